package dev.weft.report;

import static dev.weft.report.Text.text;
import static java.util.stream.Collectors.toList;

import dev.weft.report.ShownRun.Detail;
import dev.weft.report.ShownRun.Fact;
import dev.weft.report.ShownRun.State;
import dev.weft.report.ShownRun.Verdict;
import dev.weft.report.ShownRun.View;
import dev.weft.report.ShownRun.ViewPart;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.OptionalDouble;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** Turns a run record into what a page shows. */
public final class RunView {

    private final RunRecord record;
    private final RunRecord.Problem problem;
    private final RunRecord.Execution execution;
    private final Views views;

    private RunView(RunRecord record) {
        this.record = record;
        this.problem = record.problem();
        this.execution = record.execution();
        this.views = record.views();
    }

    /** If it has no label, the record's file or the command is its name. */
    public static ShownRun of(RunRecord record, String nameIfUnlabelled) {
        RunView view = new RunView(record);
        return view.shown(nameIfUnlabelled, view.verdict(), true);
    }

    /** Like {@link #of}, without advice, which is about the options of run. */
    public static ShownRun withoutAdvice(RunRecord record, String name) {
        RunView view = new RunView(record);
        return view.shown(name, view.verdict(), false);
    }

    /** A run that is still being measured; nothing is verified yet. */
    public static ShownRun underWay(RunRecord record, String name) {
        Verdict verdict = new Verdict(State.RUNNING, "being measured; verified at the end");
        return new RunView(record).shown(name, verdict, false);
    }

    private ShownRun shown(String nameIfUnlabelled, Verdict verdict, boolean advised) {
        double bytesPerRow =
                problem.isSummed()
                        ? (double) problem.n() * DType.FP32.bytes()
                        : (double) problem.k() * DType.of(problem.aDtype()).bytes();
        CallSpans call = CallSpans.of(record);
        ShownRun.Analysis analysis =
                ShownRun.Analysis.of(call, bytesPerRow, CallSpans.TrackKind.COMPUTE);
        if (advised) {
            analysis = analysis.withAdvice(Adviser.of(record, call, analysis));
        }
        return new ShownRun(
                record.label() == null ? nameIfUnlabelled : record.label(),
                subtitle(),
                record.simulated(),
                verdict,
                verdict.state() == State.RUNNING || verdict.state() == State.FAILED
                        ? null
                        : Conclusion.of(record).sentence(),
                facts(),
                details(),
                views(),
                call,
                bytesPerRow,
                record.flopsPerRank() / Math.max(1, problem.m()),
                analysis,
                basis());
    }

    private ShownRun.Basis basis() {
        String product =
                text("[%d x %d] x [%d x %d]", problem.m(), problem.k(), problem.k(), problem.n());
        String setup =
                String.join(
                        "|",
                        problem.toString(),
                        execution.device(),
                        execution.engine(),
                        "" + execution.computeWorkers(),
                        execution.hosts().toString());
        return new ShownRun.Basis(product, setup);
    }

    private String subtitle() {
        return text(
                "%s%d ranks%s %s, %s, [%d x %d] x [%d x %d], %s",
                problem.isSummed() ? problem.op() + ", " : "",
                problem.ranks(),
                problem.groups() > 1 ? " in " + problem.groups() + " groups" : "",
                record.simulated()
                        ? "simulated on " + execution.machine()
                        : "(" + execution.launcher() + ") on " + execution.device() + onLinks(),
                execution.algorithm(),
                problem.m(),
                problem.k(),
                problem.k(),
                problem.n(),
                problem.aDtype());
    }

    private Verdict verdict() {
        Verification verification = record.verification();
        if (verification == null) {
            return new Verdict(
                    State.PREDICTED, "simulated: times are predicted, nothing was multiplied");
        }
        return verification.passed()
                ? new Verdict(State.PASSED, passed(verification))
                : new Verdict(State.FAILED, verification.describeFailure());
    }

    private String passed(Verification verification) {
        return (Boolean.TRUE.equals(verification.gatheredExact()) ? "gathered A exact, " : "")
                + (verification.bitwiseEqualToUnfused()
                        ? "product bitwise equal to the unfused one, "
                        : "")
                + "float64 bound holds ("
                + text("%d of %d rows", verification.checkedRows(), verification.totalRows())
                + (verification.freivalds() ? ", the rest by Freivalds" : "")
                + ")"
                + (record.simulated() ? "; times are predicted" : "");
    }

    private List<Fact> facts() {
        List<Fact> facts = new ArrayList<>();
        facts.add(
                new Fact(
                        "speedup",
                        "Speedup",
                        views.speedup(),
                        text("%.2fx", views.speedup()),
                        execution.isSequential()
                                ? "the call itself is sequential, nothing overlaps"
                                : text(
                                        "sequential %s / pipelined %s",
                                        time(views.sequential()), time(views.pipelined()))));
        facts.add(efficiency());
        String over = views.overLimit();
        facts.add(
                new Fact(
                        "limitFraction",
                        "Of the limit",
                        views.limitFraction(),
                        percent(views.limitFraction()),
                        text(
                                "the larger of product %s and %s %s alone / pipelined%s",
                                time(views.computeOnly()),
                                problem.exchange(),
                                time(views.commOnly()),
                                over == null ? "" : " (" + over + ")")));
        facts.add(
                new Fact(
                        "tflops",
                        "TFLOP/s per rank",
                        record.tflops(),
                        record.tflops() > 0 ? text("%.3g", record.tflops()) : "none",
                        "of one rank's product, pipelined"));
        return facts;
    }

    private Fact efficiency() {
        OptionalDouble efficiency = views.overlapEfficiency();
        String name = "Overlap efficiency";
        return efficiency.isPresent()
                ? new Fact(
                        "overlapEfficiency",
                        name,
                        efficiency.getAsDouble(),
                        percent(efficiency.getAsDouble()),
                        text("of the smaller of %s and product is hidden", problem.exchange()))
                : new Fact(
                        "overlapEfficiency",
                        name,
                        Double.NaN,
                        views.predicted() ? "none" : "not measurable",
                        views.predicted()
                                ? "there is no gather or no product"
                                : views.whyNoEfficiency(problem.exchange()));
    }

    private static String percent(double fraction) {
        return text("%.1f%%", 100 * fraction);
    }

    private String time(Samples samples) {
        return Text.time(views.us(samples) * 1e3);
    }

    private List<View> views() {
        return List.of(
                new View("computeOnly", "Compute only", views.computeOnly(), List.of()),
                new View("commOnly", "Comm only", views.commOnly(), List.of()),
                new View("sequential", "Sequential", views.sequential(), sequentialParts()),
                new View("pipelined", "Pipelined", views.pipelined(), List.of()));
    }

    private List<ViewPart> sequentialParts() {
        return List.of(
                new ViewPart(problem.exchange(), views.commUs()),
                new ViewPart("product", views.computeUs()));
    }

    private List<Detail> details() {
        RunRecord.Environment where = record.environment();
        String algorithm = execution.algorithm();
        String asked = execution.requestedAlgorithm();
        String hosts = execution.hosts().toString();
        return List.of(
                new Detail(
                        "Algorithm",
                        algorithm + (algorithm.equals(asked) ? "" : " (" + asked + ")")),
                new Detail("Engine", execution.engine()),
                detail(
                        "Workers per rank",
                        "%d compute, %d lanes",
                        execution.computeWorkers(),
                        execution.lanes()),
                new Detail("Ranks on each host", hosts.substring(1, hosts.length() - 1)),
                new Detail("Link of each rank", link()),
                detail(
                        "Types",
                        "A %s, B %s, C %s%s",
                        problem.aDtype(),
                        problem.bDtype(),
                        problem.outDtype(),
                        problem.scales() == null ? "" : ", scales by " + problem.scales()),
                new Detail("B", b() + (problem.transposeB() ? ", transposed" : "")),
                new Detail("Epilogue", problem.epilogue() == null ? "none" : problem.epilogue()),
                new Detail("Data", problem.data() + ", seed " + problem.seed()),
                new Detail("Shards", shards()),
                detail(
                        "Rounds",
                        "%d measured after %d",
                        execution.iterations(),
                        execution.warmup()),
                detail(
                        "Where",
                        "Weft %s, Java %s, %s %s, %d cores",
                        where.weft(),
                        where.java(),
                        where.os(),
                        where.arch(),
                        where.cores()),
                new Detail("When", where.started()));
    }

    private String onLinks() {
        return execution.linkBitsPerSecond() == null ? "" : ", links " + link();
    }

    private String link() {
        Long rate = execution.linkBitsPerSecond();
        return rate == null ? "as it is" : text("paced to %.3g Mbit/s", rate / 1e6);
    }

    private String b() {
        return problem.isSummed()
                ? "rows on each rank: " + problem.kParts() + "; sums " + execution.order()
                : problem.rhs();
    }

    private static Detail detail(String label, String form, Object... values) {
        return new Detail(label, text(form, values));
    }

    private String shards() {
        String rows =
                record.ranks().stream()
                        .sorted(Comparator.comparingInt(rank -> rank.timeline().rank()))
                        .collect(
                                Collectors.groupingBy(
                                        RunRecord.Rank::group, TreeMap::new, toList()))
                        .values()
                        .stream()
                        .map(RunView::shards)
                        .distinct()
                        .collect(Collectors.joining(" / "));
        return rows
                + " in chunks of "
                + record.ranks().getFirst().chunkRows()
                + " rows"
                + (problem.replicaGroups() == null ? "" : ", ranks " + problem.replicaGroups());
    }

    /** The shards of one group. */
    private static String shards(List<RunRecord.Rank> group) {
        boolean even = group.stream().map(RunRecord.Rank::shardRows).distinct().count() == 1;
        return even
                ? group.getFirst().shardRows() + " rows each"
                : String.join(", ", group.stream().map(rank -> "" + rank.shardRows()).toList());
    }
}
