package dev.weft.cli.run;

import dev.weft.cli.console.Version;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.options.RhsOption;
import dev.weft.cli.options.RunRequest;
import dev.weft.cli.simulate.PricedGroups;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.plan.Hosts;
import dev.weft.report.RunRecord;
import dev.weft.report.Samples;
import dev.weft.report.Verification;
import dev.weft.report.Views;
import dev.weft.trace.Timeline;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntToLongFunction;
import java.util.function.ToLongFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

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
                problem.labelOfB(),
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
                        .mapToDouble(Records::progressCores)
                        .filter(cores -> !Double.isNaN(cores))
                        .max()
                        .orElse(Double.NaN),
                execution.rounds().warmup(),
                first.times().size(),
                order);
    }

    /** How many cores the fabric's own thread used; NaN if it has none. */
    private static double progressCores(RankReport report) {
        double used = report.times().stream().mapToDouble(RoundTimes::progressCpu).sum();
        double called = report.times().stream().mapToDouble(RoundTimes::pipelined).sum();
        return used == 0 ? Double.NaN : used / called;
    }

    /** The slowest rank's times of every round; a call's two parts are of the same rank. */
    private static Views views(List<RankReport> reports, boolean summed) {
        Samples sequential = slowest(reports, RoundTimes::sequential);
        // A rank that has multiplied waits for the others before anything is reduced.
        Samples product = slowest(reports, times -> times.sequential() - times.exchange());
        Samples gather = byRound(reports, RoundTimes::sequential, RoundTimes::exchange);
        boolean ofExample = reports.getFirst().times().getFirst().baseline() >= 0;
        return new Views(
                slowest(reports, RoundTimes::computeOnly),
                slowest(reports, RoundTimes::commOnly),
                sequential,
                summed ? sequential.minus(product) : gather,
                summed ? product : sequential.minus(gather),
                slowest(reports, RoundTimes::pipelined),
                false,
                ofExample ? slowest(reports, RoundTimes::baseline) : null);
    }

    private static Samples slowest(List<RankReport> reports, ToLongFunction<RoundTimes> view) {
        return byRound(reports, view, view);
    }

    /** A view of the rank whose {@code by} was the longest, round by round. */
    private static Samples byRound(
            List<RankReport> reports,
            ToLongFunction<RoundTimes> by,
            ToLongFunction<RoundTimes> view) {
        return Samples.ofNs(
                IntStream.range(0, reports.getFirst().times().size())
                        .mapToObj(
                                round ->
                                        reports.stream()
                                                .map(report -> report.times().get(round))
                                                .reduce(
                                                        (a, b) ->
                                                                by.applyAsLong(b)
                                                                                > by.applyAsLong(a)
                                                                        ? b
                                                                        : a)
                                                .orElseThrow())
                        .mapToLong(view)
                        .toArray());
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
