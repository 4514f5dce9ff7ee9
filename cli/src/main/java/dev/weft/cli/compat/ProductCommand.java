package dev.weft.cli.compat;

import static dev.weft.report.Text.text;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.cli.options.CallOptions;
import dev.weft.cli.options.RhsOption;
import dev.weft.cli.run.RankReport;
import dev.weft.cli.run.Records;
import dev.weft.cli.simulate.PredictedViews;
import dev.weft.cli.simulate.SimRules;
import dev.weft.cli.simulate.SimTimelines;
import dev.weft.cli.view.Summary;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.plan.Hosts;
import dev.weft.report.CallSpans;
import dev.weft.report.RecordJson;
import dev.weft.report.RunRecord;
import dev.weft.report.RunRecordJson;
import dev.weft.report.RunView;
import dev.weft.report.Verification;
import dev.weft.search.Candidate;
import dev.weft.search.PlanSearch;
import dev.weft.sim.Prediction;
import dev.weft.sim.SimulatedView;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;

/** A command that multiplies what it gathers; its outcome is a run record with more to it. */
abstract class ProductCommand extends SourceCommand implements ProductRun.Source {

    /** Of the latest {@link #job}. */
    private ProductRun run;

    ProductCommand(int ranks, int warmup, int iterations) {
        super(ranks, warmup, iterations);
    }

    /** Of A, B and C. */
    abstract DType type();

    /** What the options ask for. */
    abstract ProductRun run(int count, Arena arena);

    /** How the problem is priced. */
    abstract PlanSearch search(ProductRun asked);

    /** What runs, after the number of ranks. */
    abstract String describe(ProductRun asked);

    /** A rank's line, in the source's words. */
    abstract String line(SourceReport report);

    /** Refuses more than one group, where one is simulated. */
    void refuseSimulatedGroups(int count) {}

    /** Writes what the source calls the problem. */
    abstract void writeProblem(ProductRun asked, JsonGenerator json) throws IOException;

    final ProductRun run(
            int groupSize,
            ReplicaGroups groups,
            long m,
            long k,
            long n,
            boolean ownB,
            Arena arena) {
        return new ProductRun(
                this,
                groupSize,
                groups,
                m,
                k,
                n,
                ownB,
                type(),
                mode.cuda(),
                options.seed,
                rounds.warmup(),
                rounds.iterations(),
                new ConcurrentHashMap<>(),
                arena);
    }

    @Override
    final Job job(int count, Arena arena) {
        run = run(count, arena);
        return run::run;
    }

    @Override
    final int finish(Hosts hosts, List<SourceReport> reports) throws IOException {
        int count = reports.size();
        console().info(where(count, hosts) + ": " + describe(run));
        reports.forEach(report -> console().print(line(report)));
        List<RankReport> ran = reports.stream().map(SourceReport::run).toList();
        RunRecord record =
                new RunRecord(
                        problem(count),
                        Records.execution(execution(), hosts, ran),
                        Records.views(ran),
                        flopsPerRank(),
                        reports.stream()
                                .map(SourceReport::judged)
                                .reduce(Verification::and)
                                .orElseThrow(),
                        spans(reports, run.groups(), run.m()),
                        Records.environment(),
                        null);
        write(mode.machine == null ? record : record.beside(predicted()), reports);
        return CallOptions.exitCode(
                err(),
                reports.stream().filter(report -> !report.passed()).map(this::line).toList());
    }

    @Override
    final void simulate(int count) throws IOException {
        refuseSimulatedGroups(count);
        PlanSearch search = SimRules.checked(search(run));
        Candidate chosen = search.candidate(algorithm());
        Prediction call = search.price(chosen, SimulatedView.PIPELINED);
        console()
                .info(
                        "Simulated on %s: %s"
                                .formatted(
                                        search.machine().name(), search.machine().description()));
        console().info(count + " ranks (sim): " + describe(run));
        write(
                Records.simulated(
                        problem(count),
                        flopsPerRank(),
                        search,
                        algorithm().label(),
                        chosen,
                        PredictedViews.of(search, chosen, call),
                        null,
                        wantsSpans() ? SimTimelines.of(search, chosen) : null),
                List.of());
    }

    /** What the machine of {@code -v} would take for a real call. */
    private RunRecord.Predicted predicted() {
        PlanSearch search = SimRules.checked(search(run));
        Candidate chosen = search.candidate(algorithm());
        Prediction call = search.price(chosen, SimulatedView.PIPELINED);
        return new RunRecord.Predicted(
                search.machine().name(), PredictedViews.of(search, chosen, call));
    }

    private void write(RunRecord record, List<SourceReport> reports) throws IOException {
        new Summary(console()).views(record, "weft " + spec.name());
        write(
                CallSpans.of(record),
                json -> write(record, reports, json),
                () -> RunView.withoutAdvice(record, "weft " + spec.name()));
    }

    private RunRecord.Problem problem(int count) {
        String type = run.type().label();
        return new RunRecord.Problem(
                count,
                run.groups().count(),
                run.m() * run.ranks(),
                run.k(),
                run.n(),
                type,
                type,
                type,
                RhsOption.label(!run.ownB()),
                run.ownB(),
                "normal",
                run.seed(),
                RunRecord.Problem.lists(run.groups(), count));
    }

    private double flopsPerRank() {
        return 2.0 * run.m() * run.ranks() * run.k() * run.cols(0);
    }

    private void write(RunRecord record, List<SourceReport> reports, JsonGenerator json)
            throws IOException {
        json.writeStringField("schema", "weft." + spec.name() + "/1");
        json.writeBooleanField("simulated", record.simulated());
        writeProblem(run, json);
        json.writeStringField("dtype", run.type().label());
        json.writeNumberField("seed", run.seed());
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
            json.writeNumberField("elapsedNs", report.timeline().elapsedNs());
            json.writeBooleanField("passed", report.passed());
            json.writeEndObject();
        }
        json.writeEndArray();
    }

    /** What is found besides the errors, and the verdict. */
    static String verdict(SourceReport report) {
        Verification judged = report.judged();
        boolean sampled = judged.checkedRows() < judged.totalRows();
        return text(
                "(%d rows%s) %s the unfused product %s",
                judged.checkedRows(),
                sampled && !judged.freivalds() ? ", others WRONG by Freivalds" : "",
                judged.bitwiseEqualToUnfused() ? "bitwise" : "DIFFERS from",
                report.passed() ? "PASS" : "FAIL");
    }
}
