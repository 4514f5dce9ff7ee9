package dev.weft.cli.compat;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.cli.console.Console;
import dev.weft.cli.console.ExitCode;
import dev.weft.cli.console.JsonTarget;
import dev.weft.cli.console.Progress;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.console.Version;
import dev.weft.cli.data.CommandFiles;
import dev.weft.cli.options.CallOptions;
import dev.weft.cli.options.DeadlineOption;
import dev.weft.cli.options.ExecutionOptions;
import dev.weft.cli.options.ProblemOptions;
import dev.weft.cli.options.SourceOptions;
import dev.weft.cli.view.ReportFiles;
import dev.weft.compat.Sb2sbConfig;
import dev.weft.fabric.World;
import dev.weft.op.Timeline;
import dev.weft.report.Samples;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code weft gather}: the SBUF-to-SBUF gathers, verified byte for byte and measured. */
@Command(
        name = "gather",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        sortOptions = false,
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
            "  ./weft launch -n 4 -- ./weft gather --launcher joined",
            "",
            "Exit codes: 0 exact, 1 failed, 2 wrong usage."
        })
public final class GatherCommand implements Callable<Integer> {

    @Spec CommandSpec spec;

    @Option(
            names = "--tiled",
            description = "In tiles of 128 rows, for more than 128 rows or several programs.")
    boolean tiled;

    @Option(names = "--rows", description = "Shard below shard instead of beside it.")
    boolean below;

    @Option(
            names = {"-n", "--n-ranks"},
            paramLabel = "R",
            description = "Ranks of the world (default: 8, or as many as were launched).")
    Integer ranks;

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

    @Option(
            names = "--dtype",
            paramLabel = "TYPE",
            defaultValue = "bf16",
            description = "fp16, bf16 or fp32 (default: ${DEFAULT-VALUE}).")
    String dtype;

    @Option(
            names = "--lnc",
            paramLabel = "L",
            description = "Programs per rank, which share the tiles; with --tiled (default: 1).")
    Integer lnc;

    @Option(
            names = "--groups",
            paramLabel = "G",
            defaultValue = "1",
            description =
                    "Replica groups of consecutive ranks, each gathering on its own"
                            + " (default: ${DEFAULT-VALUE}).")
    int groups;

    @Option(
            names = "--algorithm",
            paramLabel = "NAME",
            defaultValue = "auto",
            description =
                    "auto, ring, bidirectional-ring, mesh-push, mesh-pull, direct or sequential"
                            + " (default: ${DEFAULT-VALUE}).")
    String algorithm;

    @Option(
            names = "--on-chip-bytes",
            paramLabel = "BYTES",
            description = "Capacity that an untiled input must fit (default: 24 MiB).")
    long onChipBytes = Sb2sbConfig.DEFAULT.onChipBytes();

    @Option(
            names = "--launcher",
            paramLabel = "KIND",
            defaultValue = "threads",
            description = {
                "Ranks as threads of this command, or joined: this process is one of the ranks",
                "that 'weft launch' has started (default: ${DEFAULT-VALUE})."
            })
    String launcher;

    @Option(
            names = "--warmup",
            paramLabel = "N",
            defaultValue = "5",
            description = "Rounds before measuring (default: ${DEFAULT-VALUE}).")
    int warmup;

    @Option(
            names = "--iterations",
            paramLabel = "N",
            defaultValue = "20",
            description = "Measured rounds (default: ${DEFAULT-VALUE}).")
    int iterations;

    @Mixin CallOptions options;

    @Override
    public Integer call() throws IOException {
        JsonTarget target = new JsonTarget(options.json, spec.commandLine().getOut());
        Console console =
                new Console(
                        spec.commandLine().getOut(), options.quiet || target.toStandardOutput());
        boolean joined =
                ProblemOptions.oneOf("--launcher", launcher, "threads", "joined").equals("joined");
        if (joined) {
            DeadlineOption.refuseJoined(spec);
            options.reports.refuse("joined");
        }
        ReportFiles files = new ReportFiles(options.reports);
        new CommandFiles().writes("--json", options.json).writes(options.reports);
        try (Arena arena = Arena.ofShared()) {
            GatherRun run = run(arena);
            List<GatherRun.Report> all = reportsOf(run, joined);
            GatherRun.Report report = all.getFirst();
            if (report.rank() != 0) {
                return report.exact() ? 0 : ExitCode.FAILED;
            }
            print(console, run, report);
            target.write(generator -> write(generator, run, report));
            if (options.reports.wanted()) {
                List<Timeline> timelines = all.stream().map(GatherRun.Report::timeline).toList();
                files.write(SourceReports.gather(run, report, timelines), console);
            }
            return CallOptions.exitCode(
                    spec.commandLine().getErr(),
                    report.exact() ? List.of() : List.of("wrong bytes on some rank"));
        }
    }

    private List<GatherRun.Report> reportsOf(GatherRun run, boolean joined) {
        Progress progress = Progress.forTerminal(options.quiet);
        try (World world = joined ? World.joined() : threads()) {
            return world.call(
                    fabric -> {
                        check(fabric.size());
                        return run.run(fabric, fabric.rank() == 0 ? progress : new Progress(false));
                    });
        } finally {
            progress.end();
        }
    }

    private GatherRun run(Arena arena) {
        if (tiled && below) {
            throw new UsageException("--tiled and --rows: expected one of them at most");
        }
        if (lnc != null && (!tiled || lnc < 1)) {
            throw new UsageException("--lnc " + lnc + ": expected 1 or more, with --tiled");
        }
        return GatherRun.of(
                tiled ? GatherRun.Kind.TILED : below ? GatherRun.Kind.ROWS : GatherRun.Kind.UNTILED,
                SourceOptions.size("--h/--m", rows, tiled ? 256 : 128),
                SourceOptions.size("--w/--k", cols, 512),
                ProblemOptions.type("--dtype", dtype),
                groups,
                lnc == null ? 1 : lnc,
                new Sb2sbConfig(ExecutionOptions.algorithm(algorithm), onChipBytes),
                between("--warmup", warmup, 0),
                between("--iterations", iterations, 1),
                options.seed,
                arena);
    }

    private static int between(String option, int value, int least) {
        if (value < least || value > 1_000_000) {
            throw new UsageException(option + " " + value + ": expected " + least + " to 1000000");
        }
        return value;
    }

    private World threads() {
        return World.threads(
                SourceOptions.ranks(ranks == null ? 8 : ranks), options.deadline.value);
    }

    private void check(int size) {
        if (ranks != null && ranks != size) {
            throw new UsageException("--n-ranks " + ranks + ": " + size + " ranks were launched");
        }
        if (groups < 1 || size % groups != 0) {
            throw new UsageException(
                    "--groups %s: expected a number that divides the %s ranks"
                            .formatted(groups, size));
        }
    }

    private static void print(Console console, GatherRun run, GatherRun.Report report) {
        console.print(
                "%s AllGather %s (cpu, %s, %s%s%s%s, [%s, %s] %s each)"
                        .formatted(
                                report.exact() ? "[SUCCESS]" : "[FAILED]",
                                kind(run),
                                report.algorithm(),
                                report.ranks(),
                                report.ranks() == 1 ? " rank in " : " ranks in ",
                                run.groups(),
                                run.groups() == 1 ? " group" : " groups",
                                run.rows(),
                                run.cols(),
                                run.dtype().label()));
        line(console, "Bytes:", report.exact() ? "exact on every rank" : "WRONG on some rank");
        line(console, "Gather:", rate(report.gather(), report.gatherGbPerSecond()));
        line(console, "Plain copy:", rate(report.copy(), report.copyGbPerSecond()));
        line(
                console,
                "Of the copy:",
                String.format(
                        Locale.ROOT,
                        "%.1f%% of the rate of a plain copy of the same %d bytes per rank",
                        ofTheCopy(report),
                        report.receivedBytes()));
    }

    private static String kind(GatherRun run) {
        return switch (run.kind()) {
            case UNTILED -> "sb2sb";
            case TILED -> "sb2sb tiled";
            case ROWS -> "rows";
        };
    }

    private static double ofTheCopy(GatherRun.Report report) {
        double copy = report.copyGbPerSecond();
        return copy == 0 ? 0 : 100 * report.gatherGbPerSecond() / copy;
    }

    private static String rate(Samples samples, double gbPerSecond) {
        return String.format(
                Locale.ROOT,
                "%.3f ms (spread %.3f)  %.2f GB/s per rank",
                samples.median() / 1e3,
                samples.spread() / 1e3,
                gbPerSecond);
    }

    private static void line(Console console, String label, String value) {
        console.print(String.format(Locale.ROOT, "  %-14s%s", label, value));
    }

    private static void write(JsonGenerator json, GatherRun run, GatherRun.Report report)
            throws IOException {
        json.writeStringField("schema", "weft.gather/1");
        json.writeStringField("kind", run.kind().name().toLowerCase(Locale.ROOT));
        json.writeNumberField("ranks", report.ranks());
        json.writeNumberField("groups", run.groups());
        json.writeNumberField("rows", run.rows());
        json.writeNumberField("cols", run.cols());
        json.writeStringField("dtype", run.dtype().label());
        json.writeNumberField("lnc", run.lnc());
        json.writeNumberField("programs", report.programs());
        json.writeStringField("algorithm", report.algorithm());
        json.writeStringField("requestedAlgorithm", run.config().algorithm().label());
        json.writeNumberField("warmup", run.warmup());
        json.writeNumberField("iterations", run.iterations());
        json.writeNumberField("seed", run.seed());
        json.writeBooleanField("exact", report.exact());
        json.writeNumberField("receivedBytesPerRank", report.receivedBytes());
        samples(json, "gather", report.gather(), report.gatherGbPerSecond());
        samples(json, "plainCopy", report.copy(), report.copyGbPerSecond());
    }

    private static void samples(
            JsonGenerator json, String name, Samples samples, double gbPerSecond)
            throws IOException {
        json.writeObjectFieldStart(name);
        json.writeNumberField("medianUs", samples.median());
        json.writeNumberField("spreadUs", samples.spread());
        json.writeNumberField("gbPerSecond", gbPerSecond);
        json.writeArrayFieldStart("samplesUs");
        for (double us : samples.us()) {
            json.writeNumber(us);
        }
        json.writeEndArray();
        json.writeEndObject();
    }
}
