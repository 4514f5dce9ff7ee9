package dev.weft.compat.command;

import static dev.weft.report.Text.text;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.cli.simulate.SimRules;
import dev.weft.cli.view.Summary;
import dev.weft.compat.command.ProductRun.At;
import dev.weft.gemm.Deviation;
import dev.weft.json.RecordJson;
import dev.weft.plan.Hosts;
import dev.weft.report.RunRecord;
import dev.weft.report.RunRecordJson;
import dev.weft.report.RunView;
import dev.weft.report.Verification;
import dev.weft.search.PlanSearch;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** A command that multiplies what it gathers; its result is a run record with additions. */
abstract class ProductCommand extends SourceCommand<ProductRun> {

    /** All rows of a group's A, by its number; filled as needed, in the run's arena. */
    final Map<Integer, Matrix> inputs = new ConcurrentHashMap<>();

    ProductCommand(String schema, int ranks, int warmup, int iterations) {
        super(schema, ranks, warmup, iterations);
    }

    /** Prepares the call. Collective. */
    abstract <M> SourceCall<M> prepare(At<M> at);

    /**
     * The source's own rule.
     *
     * @param fused the fused operator's product; null unless each rank has its own B
     */
    abstract boolean isRight(Deviation deviation, Matrix product, Matrix fused);

    /** Whether every row is compared with float64, however many there are. */
    boolean looksAtEveryRow() {
        return false;
    }

    /** A description of what runs, printed after the number of ranks. */
    abstract String describe(int world);

    /** Writes the problem in the source's terms. */
    abstract void writeProblem(JsonGenerator json) throws IOException;

    /** How a ring of slices is priced, with {@code lnc} programs per rank. */
    final PlanSearch slicedRing(List<Integer> group, int lnc, int channels, boolean onChip) {
        return PlanSearch.ofSlicedRing(
                SimRules.machine(mode.machine, lnc),
                run.shards(group),
                run.k(),
                run.cols(group.getFirst()),
                run.type(),
                lnc,
                channels,
                onChip);
    }

    @Override
    final void tell(RunRecord record, List<SourceReport> reports) throws IOException {
        console.info(where(record) + ": " + describe(record.problem().ranks()));
        reports.forEach(report -> console.print(line(report)));
        String name = "weft " + spec.name();
        new Summary(console).views(record, name);
        write(
                record,
                json -> write(record, reports, json),
                call -> RunView.withoutAdvice(record, name));
    }

    private String where(RunRecord record) {
        int count = record.problem().ranks();
        if (record.simulated()) {
            return count + " ranks (sim)";
        }
        Hosts hosts = new Hosts(record.execution().hosts());
        return "%s (%s%s) on the %s"
                .formatted(
                        count(count, "rank"),
                        record.execution().launcher(),
                        hosts.count() > 1 ? ", hosts of " + hosts : "",
                        mode.cuda() ? "GPU" : "CPU");
    }

    /** A rank's line, in the source's words. */
    @Override
    final String line(SourceReport report) {
        return text(
                "[rank %d] %s max_abs_err=%.6g rel_err=%.6g %s",
                report.rank(),
                result(report),
                report.judged().maxAbsErr(),
                report.judged().relErr(),
                verdict(report));
    }

    /** What a rank got. */
    String result(SourceReport report) {
        return "shape=" + Arrays.toString(report.shape());
    }

    /** The findings besides the errors, and the verdict. */
    String verdict(SourceReport report) {
        Verification judged = report.judged();
        boolean sampled = judged.checkedRows() < judged.totalRows();
        return text(
                "(%d rows%s) %s the unfused product %s",
                judged.checkedRows(),
                sampled && !judged.freivalds() ? ", others WRONG by Freivalds" : "",
                judged.bitwiseEqualToUnfused() ? "bitwise" : "DIFFERS from",
                passOrFail(report));
    }

    static String passOrFail(SourceReport report) {
        return report.passed() ? "PASS" : "FAIL";
    }

    private void write(RunRecord record, List<SourceReport> reports, JsonGenerator json)
            throws IOException {
        writeProblem(json);
        json.writeStringField("dtype", run.type().label());
        json.writeNumberField("seed", seed);
        RunRecordJson.measured(record, json);
        json.writeArrayFieldStart("ranks");
        for (SourceReport report : reports) {
            Verification judged = report.judged();
            json.writeStartObject();
            json.writeNumberField("rank", report.rank());
            if (!report.path().isEmpty()) {
                json.writeStringField("path", report.path());
            }
            RecordJson.field(json, "shape", report.shape());
            RecordJson.field(json, "maxAbsErr", judged.maxAbsErr());
            RecordJson.field(json, "relErr", judged.relErr());
            json.writeNumberField("checkedRows", judged.checkedRows());
            RecordJson.field(json, "gatheredExact", judged.gatheredExact());
            json.writeBooleanField("bitwiseEqualToUnfused", judged.bitwiseEqualToUnfused());
            json.writeNumberField("reachableBytes", report.reachableBytes());
            json.writeNumberField("elapsedNs", report.run().timeline().elapsedNs());
            json.writeBooleanField("passed", report.passed());
            json.writeEndObject();
        }
        json.writeEndArray();
    }
}
