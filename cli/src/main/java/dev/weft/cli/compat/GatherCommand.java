package dev.weft.cli.compat;

import static dev.weft.report.Text.text;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.cli.console.Console;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.AlgorithmOption;
import dev.weft.cli.options.CallOptions;
import dev.weft.cli.options.DtypeOption;
import dev.weft.cli.options.GroupsOption;
import dev.weft.cli.options.SourceOptions;
import dev.weft.cli.run.RankReport;
import dev.weft.cli.run.Records;
import dev.weft.cli.run.ViewTimes;
import dev.weft.cli.simulate.PredictedViews;
import dev.weft.cli.simulate.SimRules;
import dev.weft.cli.simulate.SimTimelines;
import dev.weft.compat.Sb2sb;
import dev.weft.compat.Sb2sbConfig;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Hosts;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.Cut;
import dev.weft.report.CallSpans;
import dev.weft.report.RecordJson;
import dev.weft.report.RunRecord;
import dev.weft.report.RunRecordJson;
import dev.weft.report.Samples;
import dev.weft.search.Candidate;
import dev.weft.search.PlanSearch;
import dev.weft.search.PlanSearch.Budget;
import dev.weft.search.Problem;
import dev.weft.sim.SimulatedView;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft gather}: the SBUF-to-SBUF gathers, verified byte for byte and measured. */
@Command(
        name = "gather",
        description =
                "Gathers [H, W] of each rank along the last dimension to [H, W x ranks], compares"
                        + " every byte on every rank, and prints the rate beside that of a plain"
                        + " copy of as many bytes by as many threads.",
        footer = {
            "",
            "GB/s are the bytes that a rank gets from its peers by the median time from the first",
            "rank's start to the last one's end.",
            "",
            "Examples:",
            "  ./weft gather -n 8",
            "  ./weft gather --tiled -n 8 --m 512 --k 1024 --lnc 2 --dtype fp16",
            "  ./weft gather --rows -n 4 --m 1000 --k 768 --algorithm ring --json gather.json",
            "  ./weft gather -n 8 --launcher processes --report gather.html",
            "  ./weft gather -r sim -v trn2 -n 16",
            "  ./weft launch -n 4 -- ./weft gather --launcher joined",
            "",
            "Exit codes: 0 exact, 1 failed, 2 wrong usage."
        })
public final class GatherCommand extends SourceCommand {

    @Option(
            names = "--tiled",
            description = "In tiles of 128 rows, for more than 128 rows or several programs.")
    boolean tiled;

    @Option(names = "--rows", description = "Shard below shard instead of beside it.")
    boolean below;

    @Option(
            names = {"--h", "--m"},
            paramLabel = "ROWS",
            description = "Rows on each rank (default: 128, tiled 256).")
    Long rows;

    @Option(
            names = {"--w", "--k"},
            paramLabel = "COLS",
            description = "Columns on each rank (default: 512).")
    Long cols;

    @Mixin DtypeOption dtype = new DtypeOption(DType.BF16);

    @Option(
            names = "--lnc",
            paramLabel = "L",
            description = "Programs per rank, which share the tiles; with --tiled (default: 1).")
    Integer lnc;

    @Mixin GroupsOption groups;

    @Mixin AlgorithmOption algorithm;

    @Option(
            names = "--on-chip-bytes",
            paramLabel = "BYTES",
            description = "Capacity that an untiled input must fit (default: 24 MiB).")
    long onChipBytes = Sb2sbConfig.DEFAULT.onChipBytes();

    /** What groups must end with, by first rank and seed. */
    final Map<String, Matrix> wholes = new ConcurrentHashMap<>();

    private GatherRun run;

    public GatherCommand() {
        super(8, 5, 20);
    }

    @Override
    PlanWriter algorithm() {
        return algorithm.writer();
    }

    @Override
    Job job(int count, Arena arena) {
        run = run(count, arena);
        return run::run;
    }

    @Override
    int finish(Hosts hosts, List<SourceReport> reports) throws IOException {
        RankReport first = reports.getFirst().run();
        List<RankReport> ran = reports.stream().map(SourceReport::run).toList();
        Outcome outcome =
                new Outcome(
                        reports.size(),
                        reports.stream().allMatch(SourceReport::passed),
                        first.device(),
                        first.algorithm(),
                        reports.getFirst().parts(),
                        slowest(ran, ViewTimes::commOnly),
                        slowest(ran, ViewTimes::sequential),
                        Records.execution(execution(), hosts, ran),
                        spans(reports, run.groups(), run.rows()));
        print(outcome);
        return CallOptions.exitCode(
                err(),
                reports.stream()
                        .filter(report -> !report.passed())
                        .map(report -> "wrong bytes on rank " + report.rank())
                        .toList());
    }

    private int largestGroup() {
        return run.groups().groups().stream().mapToInt(List::size).max().orElse(1);
    }

    private static Samples slowest(List<RankReport> ran, Function<ViewTimes, long[]> view) {
        return Samples.ofSlowest(ran.stream().map(RankReport::times).map(view).toList());
    }

    @Override
    void simulate(int count) throws IOException {
        groups.refuseSimulated(count);
        PlanSearch search = search(count);
        Candidate chosen = chosen(search);
        String machine = search.machine().name();
        console().info("Simulated on " + machine + ": " + search.machine().description());
        print(
                new Outcome(
                        count,
                        true,
                        "sim:" + machine,
                        chosen.algorithm().label(),
                        run.lnc(),
                        PredictedViews.samples(search.price(chosen, SimulatedView.PIPELINED).ns()),
                        null,
                        Records.execution(search, algorithm().label(), chosen),
                        wantsSpans()
                                ? SimTimelines.of(search, chosen).ranks(search, chosen)
                                : List.of()));
    }

    private PlanSearch search(int count) {
        long[] equal = new long[count];
        Arrays.fill(equal, run.rows());
        return SimRules.search(
                SimRules.machine(mode.machine),
                new Problem(
                        Shards.of(equal),
                        run.cols(),
                        List.of(),
                        run.dtype(),
                        run.dtype(),
                        true,
                        0,
                        0,
                        run.kind() == GatherRun.Kind.ROWS
                                ? Cut.AUTOMATIC
                                : new Cut(Math.min(run.rows(), Sb2sb.MAX_TILE_ROWS), 0, 0),
                        null,
                        Map.of()));
    }

    private Candidate chosen(PlanSearch search) {
        return algorithm() == Algorithm.AUTO
                ? search.candidates(Budget.THOROUGH).getFirst()
                : search.candidate(algorithm());
    }

    /** Beside what was measured, what the machine of {@code -v} would take. */
    private String predicted() {
        if (mode.machine == null || mode.simulated()) {
            return "";
        }
        PlanSearch search = search(largestGroup());
        double ns = search.price(chosen(search), SimulatedView.PIPELINED).ns();
        return text(" [%s: %.3f ms predicted]", search.machine().name(), ns / 1e6);
    }

    /**
     * What is told of a gather.
     *
     * @param copy null where it was simulated
     */
    record Outcome(
            int ranks,
            boolean exact,
            String device,
            String algorithm,
            int programs,
            Samples gather,
            Samples copy,
            RunRecord.Execution execution,
            List<RunRecord.Rank> spans) {}

    private GatherRun run(int count, Arena arena) {
        if (tiled && below) {
            throw new UsageException("--tiled and --rows: expected one of them at most");
        }
        if (lnc != null && (!tiled || lnc < 1)) {
            throw new UsageException("--lnc " + lnc + ": expected 1 or more, with --tiled");
        }
        return new GatherRun(
                tiled ? GatherRun.Kind.TILED : below ? GatherRun.Kind.ROWS : GatherRun.Kind.UNTILED,
                SourceOptions.size("--h/--m", rows, tiled ? 256 : 128),
                SourceOptions.size("--w/--k", cols, 512),
                dtype.type(),
                groups.in(count),
                lnc == null ? 1 : lnc,
                new Sb2sbConfig(algorithm.writer(), onChipBytes),
                mode.cuda(),
                rounds.warmup(),
                rounds.iterations(),
                options.seed,
                wholes,
                arena);
    }

    private void print(Outcome outcome) throws IOException {
        Console console = console();
        boolean real = outcome.copy() != null;
        long received = run.receivedBytes();
        console.print(
                "%s AllGather %s (%s, %s, %s in %s, [%s, %s] %s each)"
                        .formatted(
                                outcome.exact() ? "[SUCCESS]" : "[FAILED]",
                                kind(run),
                                outcome.device(),
                                outcome.algorithm(),
                                count(outcome.ranks(), "rank"),
                                count(run.groups().count(), "group"),
                                run.rows(),
                                run.cols(),
                                run.dtype().label()));
        if (real) {
            console.line("Bytes:", outcome.exact() ? "exact on every rank" : "WRONG on some rank");
        }
        double rate = gbPerSecond(received, outcome.gather());
        console.line(
                "Gather:",
                time(outcome.gather(), real) + predicted() + text("  %.2f GB/s per rank", rate));
        if (real) {
            double copied = gbPerSecond(received, outcome.copy());
            console.line(
                    "Plain copy:",
                    time(outcome.copy(), true) + text("  %.2f GB/s per rank", copied));
            console.line(
                    "Of the copy:",
                    text(
                            "%.1f%% of the rate of a plain copy of the same %d bytes per rank",
                            copied == 0 ? 0 : 100 * rate / copied, received));
        }
        console.info("No product: there is neither a compute-only nor a pipelined view");
        CallSpans call = CallSpans.of(outcome.spans(), outcome.ranks(), largestGroup());
        write(
                call,
                generator -> write(generator, outcome, received),
                () -> GatherReport.of(run, outcome, call, received));
    }

    static double gbPerSecond(long bytes, Samples samples) {
        return samples.median() == 0 ? 0 : bytes / samples.median() / 1e3;
    }

    private static String time(Samples samples, boolean real) {
        return text("%.3f ms", samples.median() / 1e3)
                + (real
                        ? text(
                                " (mean %.3f, spread %.3f)",
                                samples.mean() / 1e3, samples.spread() / 1e3)
                        : " (predicted)");
    }

    private static String kind(GatherRun run) {
        return switch (run.kind()) {
            case UNTILED -> "sb2sb";
            case TILED -> "sb2sb tiled";
            case ROWS -> "rows";
        };
    }

    private void write(JsonGenerator json, Outcome outcome, long received) throws IOException {
        json.writeStringField("schema", "weft.gather/1");
        json.writeBooleanField("simulated", outcome.copy() == null);
        json.writeStringField("kind", run.kind().name().toLowerCase(Locale.ROOT));
        json.writeNumberField("ranks", outcome.ranks());
        json.writeNumberField("groups", run.groups().count());
        json.writeStringField("replicaGroups", run.groups().toString());
        json.writeNumberField("rows", run.rows());
        json.writeNumberField("cols", run.cols());
        json.writeStringField("dtype", run.dtype().label());
        json.writeNumberField("lnc", run.lnc());
        json.writeNumberField("programs", outcome.programs());
        json.writeNumberField("seed", run.seed());
        RecordJson.fields(json, outcome.execution());
        RecordJson.field(json, "exact", outcome.copy() == null ? null : outcome.exact());
        json.writeNumberField("receivedBytesPerRank", received);
        samples(json, "gather", outcome.gather(), received);
        if (outcome.copy() != null) {
            samples(json, "plainCopy", outcome.copy(), received);
        }
    }

    private static void samples(JsonGenerator json, String name, Samples samples, long received)
            throws IOException {
        json.writeObjectFieldStart(name);
        RunRecordJson.samples(samples, json);
        json.writeNumberField("gbPerSecond", gbPerSecond(received, samples));
        json.writeEndObject();
    }
}
