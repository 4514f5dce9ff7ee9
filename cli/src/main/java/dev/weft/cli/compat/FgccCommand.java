package dev.weft.cli.compat;

import static dev.weft.report.Text.text;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.cli.compat.FgccRun.Report;
import dev.weft.cli.console.Console;
import dev.weft.cli.console.WeftCommand;
import dev.weft.cli.options.CallOptions;
import dev.weft.cli.options.GroupsOption;
import dev.weft.cli.options.OptionValues;
import dev.weft.cli.options.RoundsOptions;
import dev.weft.cli.options.SourceOptions;
import dev.weft.compat.FgccConfig;
import dev.weft.report.RecordJson;
import dev.weft.report.Samples;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft fgcc}: fine-grained all-gather + matmul, verified on every rank and timed. */
@Command(
        name = "fgcc",
        description =
                "FGCC's allgather_compute_matmul: runs it on all ranks (threads), prints path,"
                        + " shape and times, and verifies every rank.",
        footer = {
            "",
            "Examples:",
            "  ./weft fgcc -n 4 --lnc 2 --force-hbm",
            "  ./weft fgcc -n 8 --groups 2 --m 512 --k 2048 --n-global 2048",
            "  ./weft fgcc -n 64 --lnc 2 --m 512 --json -",
            "",
            "Exit codes: 0 all ranks pass, 1 failed, 2 wrong usage."
        })
public final class FgccCommand extends WeftCommand {

    @Option(
            names = {"-n", "--n-ranks"},
            paramLabel = "R",
            description = "Ranks of the world: tp_degree x num_groups (default: ${DEFAULT-VALUE}).")
    int ranks = 4;

    @Mixin GroupsOption groups;

    @Option(
            names = "--lnc",
            paramLabel = "L",
            description = "Logical-core programs per rank, 1 or 2 (default: ${DEFAULT-VALUE}).")
    int lnc = 1;

    @Option(names = "--force-hbm", description = "force_hbm_cc: the HBM path in any case.")
    boolean forceHbm;

    @Option(
            names = "--on-chip-bytes",
            paramLabel = "BYTES",
            description = "On-chip memory by which the path is chosen (default: 25165824, trn2's).")
    long onChipBytes = FgccConfig.TRN2_ON_CHIP_BYTES;

    @Option(
            names = {"--n-global", "--n"},
            paramLabel = "N",
            description =
                    "Columns of B on all ranks of a group together"
                            + " (default: 1024; of --m 256, of --k 1024).")
    Long n;

    @Mixin RoundsOptions rounds = new RoundsOptions(2, 5);

    @Mixin SourceOptions source;

    @Mixin CallOptions options;

    @Override
    public Integer call() throws IOException {
        FgccRun run = checkedRun();
        SourceCall call = new SourceCall(spec, options);
        List<Report> reports;
        try (Arena arena = Arena.ofShared()) {
            List<Matrix> inputs =
                    IntStream.range(0, run.groups())
                            .mapToObj(group -> run.a(group, arena))
                            .toList();
            reports =
                    call.onRanks(
                            false,
                            ranks,
                            ranks,
                            fabric ->
                                    run.run(
                                            fabric,
                                            inputs.get(fabric.rank() / run.tpDegree()),
                                            call.progress.ofRank(fabric.rank())));
        }
        Samples samples = Samples.ofSlowest(reports.stream().map(Report::elapsedNs).toList());
        print(call.console, run, reports, samples);
        return call.finish(
                generator -> write(generator, run, reports, samples),
                () -> SourceReports.fgcc(run, reports, samples, tflops(run, samples)),
                reports.stream()
                        .filter(report -> !report.passed())
                        .map(FgccCommand::line)
                        .toList());
    }

    private FgccRun checkedRun() {
        OptionValues.ranks(ranks);
        int count = groups.of(ranks);
        return new FgccRun(
                ranks / count,
                count,
                source.m(256),
                source.k(1024),
                SourceOptions.size("--n-global", n, 1024),
                source.type(),
                forceHbm,
                new FgccConfig(lnc, onChipBytes),
                options.seed,
                rounds.warmup(),
                rounds.iterations());
    }

    private static void print(Console console, FgccRun run, List<Report> reports, Samples samples) {
        Report first = reports.getFirst();
        console.info(
                text(
                        "%d ranks in %d groups, tp_degree %d, lnc %d, %d channels: path %s%s",
                        reports.size(),
                        run.groups(),
                        run.tpDegree(),
                        run.config().lnc(),
                        first.channels(),
                        first.path(),
                        run.forceHbm() ? " (forced)" : ""));
        for (Report report : reports) {
            console.print(line(report));
        }
        console.info(
                text(
                        "Median %.3f ms (spread %.3f), %.3f TFLOP/s of all ranks; %d bytes per rank"
                                + " where peers can reach them",
                        samples.median() / 1e3,
                        samples.spread() / 1e3,
                        tflops(run, samples),
                        first.reachableBytes()));
    }

    private static String line(Report report) {
        return text(
                "[rank %d] shape=%s max_abs_err=%.6g rel_err=%.6g (%d rows%s) %s the unfused"
                        + " product %s",
                report.rank(),
                Arrays.toString(report.shape()),
                report.judgement().deviation().maxAbsErr(),
                report.judgement().deviation().relErr(),
                report.judgement().checkedRows(),
                report.judgement().freivalds() ? "" : ", others WRONG by Freivalds",
                report.bitwise() ? "bitwise" : "DIFFERS from",
                report.passed() ? "PASS" : "FAIL");
    }

    private static double tflops(FgccRun run, Samples samples) {
        double rows = (double) run.m() * run.tpDegree() * run.groups();
        return 2 * rows * run.k() * run.n() / (samples.median() * 1e6);
    }

    private static void write(
            JsonGenerator json, FgccRun run, List<Report> reports, Samples samples)
            throws IOException {
        json.writeStringField("schema", "weft.fgcc/1");
        json.writeNumberField("tpDegree", run.tpDegree());
        json.writeNumberField("numGroups", run.groups());
        json.writeNumberField("lnc", run.config().lnc());
        json.writeNumberField("onChipBytes", run.config().onChipBytes());
        json.writeBooleanField("forceHbmCc", run.forceHbm());
        json.writeNumberField("m", run.m());
        json.writeNumberField("k", run.k());
        json.writeNumberField("n", run.n());
        json.writeStringField("dtype", run.type().label());
        json.writeNumberField("seed", run.seed());
        json.writeNumberField("medianUs", samples.median());
        json.writeNumberField("spreadUs", samples.spread());
        json.writeNumberField("tflops", tflops(run, samples));
        json.writeArrayFieldStart("ranks");
        for (Report report : reports) {
            json.writeStartObject();
            json.writeNumberField("rank", report.rank());
            json.writeStringField("path", report.path().name());
            RecordJson.field(json, "shape", report.shape());
            json.writeNumberField("maxAbsErr", report.judgement().deviation().maxAbsErr());
            json.writeNumberField("relErr", report.judgement().deviation().relErr());
            json.writeNumberField("checkedRows", report.judgement().checkedRows());
            json.writeBooleanField("bitwiseEqualToUnfused", report.bitwise());
            json.writeNumberField("reachableBytes", report.reachableBytes());
            json.writeBooleanField("passed", report.passed());
            json.writeEndObject();
        }
        json.writeEndArray();
    }
}
