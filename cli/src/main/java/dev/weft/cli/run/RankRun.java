package dev.weft.cli.run;

import dev.weft.cli.console.Progress;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.run.RunOptions.Inputs;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator;
import dev.weft.op.Operator.View;
import dev.weft.op.Result;
import dev.weft.op.Timeline;
import dev.weft.plan.Algorithm;
import dev.weft.plan.RankPlan;
import java.io.IOException;

/**
 * One rank's whole job, on a CPU or a GPU: prepare, warm up, measure the views, make a functional
 * call on a poisoned output, judge the product and write it. The views take turns, so that a
 * disturbance of the machine affects all of them.
 *
 * <p>All ranks meet before each call. On a GPU, allocating, freeing and loading may wait for the
 * grids that run there, so no grid may wait for a rank that is still doing so.
 *
 * @param progress drawn by the rank that is given a visible one
 * @param listener null where nobody listens to any rank
 */
record RankRun(Inputs inputs, ExecutionSpec execution, Progress progress, RoundListener listener) {

    /** Least time between two things that a watched rank tells. */
    private static final long TELL_NS = 400_000_000L;

    /**
     * Collective.
     *
     * @param fabric null where the other ranks exist as host memory only
     */
    RankReport run(Fabric fabric) throws IOException {
        ProblemSpec problem = inputs.problem();
        Transport world = fabric == null ? null : Transport.of(fabric);
        Fabric group =
                world != null && problem.groups() > 1 ? world.split(problem.groups()) : world;
        try (RankSite<?> site =
                execution.cuda()
                        ? new CudaRank(problem, execution, inputs.operands(), world, group)
                        : new HostRank(problem, execution, inputs.operands(), world, group)) {
            return run(world, site);
        } finally {
            if (group != world) {
                group.close();
            }
        }
    }

    private <M> RankReport run(Transport world, RankSite<M> site) throws IOException {
        int rank = world == null ? 0 : world.rank();
        try (Operator<M> fused = site.prepare(execution.algorithm(), execution.keepGathered());
                Operator<M> sequential = site.prepare(Algorithm.SEQUENTIAL, false)) {
            // From now on every call finds the shard in place.
            site.place(fused);
            site.place(sequential);
            ViewTimes times = ViewTimes.of(execution.iterations());
            Timeline last = measure(world, site, fused, sequential, times);
            RankSite.Judged judged = site.judge(fused, sequential);
            // After the operators' last call; under MPI peers wait for the reports meanwhile.
            Heartbeat.Work<RankReport> write =
                    () -> {
                        inputs.folder()
                                .writeOutputs(
                                        rank, judged.product(), judged.gathered(), execution.npy());
                        return report(site, fused, times, judged, last);
                    };
            return world == null ? write.call() : Heartbeat.during(world, write);
        }
    }

    private static RankReport report(
            RankSite<?> site,
            Operator<?> fused,
            ViewTimes times,
            RankSite.Judged judged,
            Timeline timeline) {
        RankPlan plan = fused.plan();
        return new RankReport(
                plan.name(),
                site.device(),
                fused.engine(),
                fused.computeWorkers(),
                plan.lanes().size(),
                plan.chunks().chunkRows(plan.rank()),
                times,
                judged.gatheredExact(),
                judged.equal(),
                judged.withinBound(),
                fused.candidates(),
                timeline);
    }

    /** Fills in the times; returns the timeline of the last pipelined call. */
    private <M> Timeline measure(
            Transport world,
            RankSite<M> site,
            Operator<M> fused,
            Operator<M> sequential,
            ViewTimes times) {
        Timeline timeline = null;
        int rounds = execution.warmup() + execution.iterations();
        long toldNs = System.nanoTime();
        progress.begin("measuring", rounds);
        for (int round = 0; round < rounds; round++) {
            // Warm-up rounds land in the first sample, which the first measured round replaces.
            int at = Math.max(0, round - execution.warmup());
            times.computeOnly()[at] = call(world, fused, View.COMPUTE_ONLY).elapsedNs();
            times.commOnly()[at] = call(world, fused, View.COMM_ONLY).elapsedNs();
            Result<M> gatherThenProduct = call(world, sequential, View.PIPELINED);
            times.sequential()[at] = gatherThenProduct.elapsedNs();
            times.sequentialGather()[at] = gatherThenProduct.gatherNs();
            RankSite.together(world);
            long metNs = System.nanoTime();
            long cpuNs = ownCpuNs(world);
            Result<M> pipelined = fused.callInPlace(View.PIPELINED);
            times.progressCpu()[at] = ownCpuNs(world) - cpuNs;
            times.pipelined()[at] = pipelined.elapsedNs();
            boolean tells =
                    listener != null && round >= execution.warmup() && isTime(world, toldNs);
            if (round == rounds - 1 || tells) {
                // Clocks of different hosts have nothing in common but the barrier before.
                long originNs = world == null || world.sharesMemory() ? 0 : metNs;
                timeline = pipelined.timeline().since(originNs);
            }
            if (tells) {
                toldNs = System.nanoTime();
                RankReport soFar =
                        report(site, fused, times.first(at + 1), RankSite.Judged.NOT_YET, timeline);
                listener.round(world == null ? 0 : world.rank(), soFar);
            }
            progress.advance(round + 1);
        }
        progress.end();
        return timeline;
    }

    private static <M> Result<M> call(Fabric world, Operator<M> operator, View view) {
        RankSite.together(world);
        return operator.callInPlace(view);
    }

    private static long ownCpuNs(Transport world) {
        return world == null ? 0 : world.ownCpuNs();
    }

    /** All ranks tell of the same round, when the first one finds that it is time. */
    private static boolean isTime(Fabric world, long toldNs) {
        boolean own = System.nanoTime() - toldNs >= TELL_NS;
        return world == null ? own : world.exchange(own ? 1 : 0)[0] == 1;
    }
}
