package dev.weft.cli.run;

import dev.weft.cli.console.Version;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.op.Timeline;
import dev.weft.plan.Hosts;
import dev.weft.report.RunRecord;
import dev.weft.report.Samples;
import dev.weft.report.Verification;
import dev.weft.report.Views;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/** Makes a run record out of what the ranks reported. */
final class Records {

    private Records() {}

    static RunRecord of(
            ProblemSpec problem,
            ExecutionSpec execution,
            Hosts hosts,
            List<RankReport> reports,
            Verification verification) {
        return new RunRecord(
                problem(problem),
                execution(execution, hosts, reports),
                views(reports),
                problem.flopsPerRank(),
                verification,
                ranks(problem, reports),
                environment(),
                null);
    }

    static RunRecord.Problem problem(ProblemSpec problem) {
        return new RunRecord.Problem(
                problem.ranks(),
                problem.groups(),
                problem.m(),
                problem.k(),
                problem.n(),
                problem.aType().label(),
                problem.bType().label(),
                problem.outType().label(),
                problem.columnSharded() ? "column-sharded" : "replicated",
                problem.transposeB(),
                problem.data(),
                problem.seed());
    }

    private static RunRecord.Execution execution(
            ExecutionSpec execution, Hosts hosts, List<RankReport> reports) {
        RankReport first = reports.getFirst();
        return new RunRecord.Execution(
                execution.algorithm().label(),
                first.algorithm(),
                execution.launcher(),
                hosts.sizes(),
                first.device(),
                null,
                peers(execution, hosts),
                first.engine(),
                first.computeWorkers(),
                first.lanes(),
                reports.stream()
                        .mapToDouble(RankReport::progressCpu)
                        .filter(cores -> !Double.isNaN(cores))
                        .max()
                        .orElse(Double.NaN),
                execution.warmup(),
                execution.iterations());
    }

    /** Between hosts a GPU's peers are reached through host memory. */
    private static String peers(ExecutionSpec execution, Hosts hosts) {
        return execution.cuda() && hosts.count() > 1 ? "staged" : execution.peers();
    }

    private static Views views(List<RankReport> reports) {
        return new Views(
                slowest(reports, RankReport::computeOnlyNs),
                slowest(reports, RankReport::commOnlyNs),
                slowest(reports, RankReport::sequentialNs),
                slowest(reports, RankReport::sequentialGatherNs),
                slowest(reports, Records::sequentialProductNs),
                slowest(reports, RankReport::pipelinedNs),
                false);
    }

    private static long[] sequentialProductNs(RankReport report) {
        long[] product = report.sequentialNs().clone();
        for (int i = 0; i < product.length; i++) {
            product[i] -= report.sequentialGatherNs()[i];
        }
        return product;
    }

    /** A round is over when its slowest rank is. */
    private static Samples slowest(List<RankReport> reports, Function<RankReport, long[]> view) {
        long[] slowest = view.apply(reports.getFirst()).clone();
        for (RankReport report : reports) {
            long[] mine = view.apply(report);
            for (int i = 0; i < slowest.length; i++) {
                slowest[i] = Math.max(slowest[i], mine[i]);
            }
        }
        return Samples.ofNs(slowest);
    }

    /** Times start at the first rank's start, so that records do not tell how long a host is up. */
    private static List<RunRecord.Rank> ranks(ProblemSpec problem, List<RankReport> reports) {
        long originNs =
                reports.stream().mapToLong(report -> report.timeline().startNs()).min().orElse(0);
        List<RunRecord.Rank> ranks = new ArrayList<>();
        for (int rank = 0; rank < reports.size(); rank++) {
            Timeline timeline = reports.get(rank).timeline();
            ranks.add(
                    new RunRecord.Rank(
                            rank,
                            problem.groupOf(rank),
                            problem.shards().rows(problem.memberOf(rank)),
                            reports.get(rank).chunkRows(),
                            timeline.since(originNs)));
        }
        return ranks;
    }

    static RunRecord.Environment environment() {
        return new RunRecord.Environment(
                Version.number(),
                Runtime.version().toString(),
                System.getProperty("os.name"),
                System.getProperty("os.arch"),
                Runtime.getRuntime().availableProcessors(),
                Instant.now().truncatedTo(ChronoUnit.SECONDS).toString());
    }
}
