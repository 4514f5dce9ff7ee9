package dev.weft.cli.compat;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.cli.compat.RingRun.Report;
import dev.weft.cli.console.Progress;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.console.WeftCommand;
import dev.weft.cli.launch.ProgressFile;
import dev.weft.cli.options.CallOptions;
import dev.weft.cli.options.OptionValues;
import dev.weft.cli.options.SourceOptions;
import dev.weft.report.RecordJson;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft ring}: the ring tutorial's runner; every rank judges its own output. */
@Command(
        name = "ring",
        description =
                "The all-gather + matmul ring tutorial: every rank goes once round the ring,"
                        + " compares its output [R, m, N_local] with a reference product and prints"
                        + " rank, shape, max_abs_err, rel_err and PASS (rel_err under 0.01) or FAIL.",
        footer = {
            "",
            "Examples:",
            "  ./weft ring -n 16",
            "  ./weft ring -n 4 --launcher processes",
            "  ./weft ring -n 4 --m 100 --k 768 --n-local 96 --dtype fp16 --json -",
            "",
            "Exit codes: 0 all ranks pass, 1 failed, 2 wrong usage."
        })
public final class RingCommand extends WeftCommand {

    private static final int DEFAULT_RANKS = 4;

    @Option(
            names = {"-n", "--n-ranks"},
            paramLabel = "R",
            description = "Ranks of the ring, 1 to 4096 (default: 4, or as many as were launched).")
    Integer ranks;

    @Option(
            names = "--n-local",
            paramLabel = "N",
            description = "Columns of B on each rank (default: 512; of --m 128, of --k 2048).")
    Long nLocal;

    @Option(
            names = "--launcher",
            paramLabel = "KIND",
            description =
                    "Ranks as threads or processes, or joined: this process is one rank of those"
                            + " that 'weft launch' has started (default: ${DEFAULT-VALUE}).")
    String launcher = "threads";

    @Mixin SourceOptions source;

    @Mixin CallOptions options;

    @Override
    public Integer call() throws IOException {
        String kind = OptionValues.oneOf("--launcher", launcher, "threads", "processes", "joined");
        RingRun run =
                new RingRun(
                        source.m(128),
                        source.k(2048),
                        SourceOptions.size("--n-local", nLocal, 512),
                        source.type(),
                        options.seed);
        if (options.json != null && !kind.equals("threads")) {
            throw new UsageException(
                    "--json " + options.json + " with --launcher " + kind + ": expected threads");
        }
        if (!kind.equals("threads")) {
            options.reports.refuse(kind);
        }
        SourceCall call = new SourceCall(spec, options);
        if (kind.equals("processes")) {
            int count = OptionValues.ranks(ranks == null ? DEFAULT_RANKS : ranks);
            return CallOptions.exitCode(
                    err(),
                    new RingProcesses(run, count, options.deadline.value, call.progress)
                            .run(call.console));
        }
        List<Report> reports = runHere(run, kind.equals("joined"), call);
        reports.forEach(report -> call.console.print(report.line()));
        return call.finish(
                generator -> write(generator, run, reports),
                () -> SourceReports.ring(run, reports),
                reports.stream().filter(report -> !report.passed()).map(Report::line).toList());
    }

    private List<Report> runHere(RingRun run, boolean joined, SourceCall call) {
        try (Arena arena = Arena.ofShared()) {
            Map<Integer, Matrix> inputs = new ConcurrentHashMap<>();
            return call.onRanks(
                    joined,
                    ranks,
                    DEFAULT_RANKS,
                    fabric -> {
                        Matrix a = inputs.computeIfAbsent(fabric.size(), all -> run.a(all, arena));
                        return run.run(fabric, a, ofRank(fabric.rank(), call.progress));
                    });
        }
    }

    /** The first rank's stands for all; as a process of this command's it tells by a file. */
    private static Progress ofRank(int rank, Progress progress) {
        return ProgressFile.isAskedFor() ? ProgressFile.ofRank(rank) : progress.ofRank(rank);
    }

    private static void write(JsonGenerator json, RingRun run, List<Report> reports)
            throws IOException {
        json.writeStringField("schema", "weft.ring/1");
        RecordJson.fields(json, run);
        json.writeArrayFieldStart("ranks");
        for (Report report : reports) {
            json.writeStartObject();
            json.writeNumberField("rank", report.rank());
            RecordJson.field(json, "shape", report.shape());
            json.writeNumberField("maxAbsErr", report.maxAbsErr());
            json.writeNumberField("relErr", report.relErr());
            json.writeNumberField("elapsedNs", report.elapsedNs());
            json.writeBooleanField("passed", report.passed());
            json.writeEndObject();
        }
        json.writeEndArray();
    }
}
