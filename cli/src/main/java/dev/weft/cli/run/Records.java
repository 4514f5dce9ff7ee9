package dev.weft.cli.run;

import dev.weft.cli.console.Version;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.options.RhsOption;
import dev.weft.cli.options.RunRequest;
import dev.weft.cli.simulate.PricedGroups;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.op.Timeline;
import dev.weft.plan.Hosts;
import dev.weft.report.RunRecord;
import dev.weft.report.Samples;
import dev.weft.report.Verification;
import dev.weft.report.Views;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;
import java.util.function.IntToLongFunction;
import java.util.stream.Collectors;

/** Makes a run record from what the ranks reported, or what was predicted. */
public final class Records {

    private Records() {}

    static RunRecord of(
            RunRequest request, Hosts hosts, List<RankReport> reports, Verification verification) {
        ProblemSpec problem = request.problem();
        return of(
                problem(request),
                problem.flopsPerRank(),
                problem.replicaGroups(),
                rank -> problem.shards(rank).rows(problem.memberOf(rank)),
                request.execution(),
                request.order(),
                request.peers(hosts),
                hosts,
                reports,
                verification);
    }

    /**
     * The record of any problem.
     *
     * @param rows the rows of A on a rank
     * @param order the order of sums over ranks; null if there are none
     * @param peers where the peers' memory is; null on the CPU
     * @param reports by rank, including ranks in no group
     */
    public static RunRecord of(
            RunRecord.Problem problem,
            double flopsPerRank,
            ReplicaGroups groups,
            IntToLongFunction rows,
            ExecutionSpec execution,
            String order,
            String peers,
            Hosts hosts,
            List<RankReport> reports,
            Verification verification) {
        // Times start with the first rank's, so that records do not show how long a host has been
        // up.
        long originNs =
                reports.stream().mapToLong(report -> report.timeline().startNs()).min().orElse(0);
        List<RankReport> members = new ArrayList<>();
        List<RunRecord.Rank> ranks = new ArrayList<>();
        for (int rank = 0; rank < reports.size(); rank++) {
            int group = groups.groupOf(rank);
            if (group < 0) {
                continue;
            }
            RankReport report = reports.get(rank);
            Timeline timeline = report.timeline().since(originNs);
            members.add(report);
            ranks.add(
                    new RunRecord.Rank(
                            rank, group, rows.applyAsLong(rank), report.chunkRows(), timeline));
        }
        return new RunRecord(
                problem,
                execution(execution, order, peers, hosts, members),
                views(members, problem.isSummed()),
                flopsPerRank,
                verification,
                ranks,
                environment(),
                null,
                null);
    }

    /** The record of predicted times. */
    static RunRecord simulated(
            RunRequest request, PricedGroups priced, Verification verification, boolean spans) {
        return simulated(
                problem(request),
                request.problem().flopsPerRank(),
                request.execution().algorithm(),
                request.order(),
                priced,
                verification,
                spans);
    }

    /**
     * The record of predicted times of any problem.
     *
     * @param requested the requested algorithm
     * @param order the order of sums; null if there are none
     * @param verification null if nothing was multiplied
     * @param spans whether spans of the ranks are wanted
     */
    public static RunRecord simulated(
            RunRecord.Problem problem,
            double flopsPerRank,
            String requested,
            String order,
            PricedGroups priced,
            Verification verification,
            boolean spans) {
        PricedGroups.Priced slowest = priced.slowest();
        String machine = slowest.search().machine().name();
        return new RunRecord(
                problem,
                new RunRecord.Execution(
                        requested,
                        priced.algorithms(),
                        "sim",
                        priced.hosts(),
                        "sim:" + machine,
                        machine,
                        null,
                        null,
                        "simulated",
                        slowest.search().computeWorkers(),
                        slowest.search().lanesUsed(slowest.chosen()),
                        Double.NaN,
                        0,
                        1,
                        order),
                slowest.views(),
                flopsPerRank,
                verification,
                spans ? priced.ranks() : List.of(),
                environment(),
                null,
                null);
    }

    private static RunRecord.Problem problem(RunRequest request) {
        ProblemSpec problem = request.problem();
        return new RunRecord.Problem(
                problem.ranks(),
                problem.groups(),
                problem.m(),
                problem.k(),
                problem.n(),
                problem.multipliedA().label(),
                problem.multipliedB().label(),
                problem.outType().label(),
                RhsOption.label(problem.columnSharded()),
                problem.transposeB(),
                problem.data(),
                problem.seed(),
                RunRecord.Problem.lists(problem.replicaGroups(), problem.ranks()),
                request.execution().epilogue(),
                problem.op(),
                problem.gathers() ? null : problem.sums().kParts().toString(),
                problem.fp8() == null ? null : problem.fp8().scaling().label());
    }

    /** How the run was executed, from the reports. */
    private static RunRecord.Execution execution(
            ExecutionSpec execution,
            String order,
            String peers,
            Hosts hosts,
            List<RankReport> reports) {
        RankReport first = reports.getFirst();
        return new RunRecord.Execution(
                execution.algorithm(),
                // Groups of different sizes may choose differently.
                reports.stream()
                        .map(RankReport::algorithm)
                        .distinct()
                        .collect(Collectors.joining(", ")),
                execution.place().launcher().label(),
                hosts.sizes(),
                first.device(),
                null,
                execution.place().link() > 0 ? execution.place().link() : null,
                peers,
                first.engine(),
                first.computeWorkers(),
                first.lanes(),
                reports.stream()
                        .mapToDouble(report -> report.times().progressCores())
                        .filter(cores -> !Double.isNaN(cores))
                        .max()
                        .orElse(Double.NaN),
                execution.rounds().warmup(),
                first.times().rounds(),
                order);
    }

    /** The slowest rank's times of every round; a call's two parts are of the same rank. */
    private static Views views(List<RankReport> reports, boolean summed) {
        Samples sequential = slowest(reports, ViewTimes::sequential);
        // A rank that has multiplied waits for the others before anything is reduced.
        Samples product =
                summed
                        ? slowest(reports, Records::sequentialProductNs)
                        : sequential.minus(gatherOfSlowest(reports));
        return new Views(
                slowest(reports, ViewTimes::computeOnly),
                slowest(reports, ViewTimes::commOnly),
                sequential,
                summed ? sequential.minus(product) : gatherOfSlowest(reports),
                product,
                slowest(reports, ViewTimes::pipelined),
                false,
                reports.getFirst().times().baseline().length == 0
                        ? null
                        : slowest(reports, ViewTimes::baseline));
    }

    /** The gather of the rank whose sequential call was the slowest, round by round. */
    private static Samples gatherOfSlowest(List<RankReport> reports) {
        long[] gather = reports.getFirst().times().sequentialGather().clone();
        long[] slowest = reports.getFirst().times().sequential().clone();
        for (RankReport report : reports) {
            ViewTimes times = report.times();
            for (int round = 0; round < gather.length; round++) {
                if (times.sequential()[round] > slowest[round]) {
                    slowest[round] = times.sequential()[round];
                    gather[round] = times.sequentialGather()[round];
                }
            }
        }
        return Samples.ofNs(gather);
    }

    private static long[] sequentialProductNs(ViewTimes times) {
        long[] product = times.sequential().clone();
        Arrays.setAll(product, i -> product[i] - times.sequentialGather()[i]);
        return product;
    }

    private static Samples slowest(List<RankReport> reports, Function<ViewTimes, long[]> view) {
        return Samples.ofSlowest(reports.stream().map(RankReport::times).map(view).toList());
    }

    /** This process. */
    private static RunRecord.Environment environment() {
        return new RunRecord.Environment(
                Version.number(),
                Runtime.version().toString(),
                System.getProperty("os.name"),
                System.getProperty("os.arch"),
                Runtime.getRuntime().availableProcessors(),
                Instant.now().truncatedTo(ChronoUnit.SECONDS).toString());
    }
}
