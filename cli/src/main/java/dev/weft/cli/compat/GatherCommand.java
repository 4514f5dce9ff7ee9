package dev.weft.cli.compat;

import static dev.weft.report.Text.text;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.cli.compat.GatherRun.Report;
import dev.weft.cli.console.Console;
import dev.weft.cli.console.ExitCode;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.console.WeftCommand;
import dev.weft.cli.options.AlgorithmOption;
import dev.weft.cli.options.CallOptions;
import dev.weft.cli.options.DtypeOption;
import dev.weft.cli.options.GroupsOption;
import dev.weft.cli.options.OptionValues;
import dev.weft.cli.options.RoundsOptions;
import dev.weft.cli.options.SourceOptions;
import dev.weft.compat.Sb2sbConfig;
import dev.weft.op.Timeline;
import dev.weft.report.RunRecordJson;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ConcurrentHashMap;
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
            "  ./weft launch -n 4 -- ./weft gather --launcher joined",
            "",
            "Exit codes: 0 exact, 1 failed, 2 wrong usage."
        })
public final class GatherCommand extends WeftCommand {

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

    @Option(
            names = "--launcher",
            paramLabel = "KIND",
            description = {
                "Ranks as threads of this command, or joined: this process is one of the ranks",
                "that 'weft launch' has started (default: ${DEFAULT-VALUE})."
            })
    String launcher = "threads";

    @Mixin RoundsOptions rounds = new RoundsOptions(5, 20);

    @Mixin CallOptions options;

    @Override
    public Integer call() throws IOException {
        boolean joined =
                OptionValues.oneOf("--launcher", launcher, "threads", "joined").equals("joined");
        if (joined) {
            options.reports.refuse("joined");
        }
        SourceCall call = new SourceCall(spec, options);
        try (Arena arena = Arena.ofShared()) {
            GatherRun run = run(arena);
            List<Report> all =
                    call.onRanks(
                            joined,
                            ranks,
                            8,
                            fabric -> {
                                groups.of(fabric.size());
                                return run.run(fabric, call.progress.ofRank(fabric.rank()));
                            });
            Report report = all.getFirst();
            if (report.rank() != 0) {
                return report.exact() ? 0 : ExitCode.FAILED;
            }
            print(call.console, run, report);
            List<Timeline> timelines = all.stream().map(Report::timeline).toList();
            return call.finish(
                    generator -> write(generator, run, report),
                    () -> SourceReports.gather(run, report, timelines),
                    report.exact() ? List.of() : List.of("wrong bytes on some rank"));
        }
    }

    private GatherRun run(Arena arena) {
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
                groups.value,
                lnc == null ? 1 : lnc,
                new Sb2sbConfig(algorithm.writer(), onChipBytes),
                rounds.warmup(),
                rounds.iterations(),
                options.seed,
                new ConcurrentHashMap<>(),
                arena);
    }

    private static void print(Console console, GatherRun run, Report report) {
        console.print(
                "%s AllGather %s (cpu, %s, %s in %s, [%s, %s] %s each)"
                        .formatted(
                                report.exact() ? "[SUCCESS]" : "[FAILED]",
                                kind(run),
                                report.algorithm(),
                                count(report.ranks(), "rank"),
                                count(run.groups(), "group"),
                                run.rows(),
                                run.cols(),
                                run.dtype().label()));
        console.line("Bytes:", report.exact() ? "exact on every rank" : "WRONG on some rank");
        console.line("Gather:", rate(report.gather(), report.gatherGbPerSecond()));
        console.line("Plain copy:", rate(report.copy(), report.copyGbPerSecond()));
        console.line(
                "Of the copy:",
                text(
                        "%.1f%% of the rate of a plain copy of the same %d bytes per rank",
                        100 * report.ofTheCopy(), report.receivedBytes()));
    }

    private static String count(int number, String what) {
        return number + " " + what + (number == 1 ? "" : "s");
    }

    private static String kind(GatherRun run) {
        return switch (run.kind()) {
            case UNTILED -> "sb2sb";
            case TILED -> "sb2sb tiled";
            case ROWS -> "rows";
        };
    }

    private static String rate(Samples samples, double gbPerSecond) {
        return text(
                "%.3f ms (spread %.3f)  %.2f GB/s per rank",
                samples.median() / 1e3, samples.spread() / 1e3, gbPerSecond);
    }

    private static void write(JsonGenerator json, GatherRun run, Report report) throws IOException {
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
        RunRecordJson.samples(samples, json);
        json.writeNumberField("gbPerSecond", gbPerSecond);
        json.writeEndObject();
    }
}
