package dev.weft.cli.run;

import dev.weft.cli.console.Progress;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator;
import dev.weft.op.Operator.View;
import dev.weft.op.Result;
import dev.weft.op.Timeline;
import java.util.function.Consumer;

/**
 * Measures the views of a problem on one rank. They take turns, so that a disturbance of the
 * machine affects all of them, and all ranks meet before each call.
 *
 * @param world null where the other ranks exist as host memory only
 */
public record ViewRounds(Transport world, int warmup, int iterations, Progress progress) {

    /** Least time between two things that a watched rank tells. */
    private static final long TELL_NS = 400_000_000L;

    /** What is measured; every call is collective. */
    public interface Calls {

        /** Makes a call of the fused one, and gives its time. */
        long fusedNs(View view);

        /** Gathers, then multiplies: the time of both, and the gather's. */
        long[] sequentialNs();

        /** Of the latest fused call. */
        Timeline timeline();
    }

    /** The times of all rounds, and what the last pipelined call did. */
    public record Measured(ViewTimes times, Timeline timeline) {}

    /** The calls of two operators that have their shards in place. */
    public static <M> Calls of(Operator<M> fused, Operator<M> sequential) {
        return new Calls() {
            @Override
            public long fusedNs(View view) {
                return fused.callInPlace(view).elapsedNs();
            }

            @Override
            public long[] sequentialNs() {
                Result<M> result = sequential.callInPlace(View.PIPELINED);
                return new long[] {result.elapsedNs(), result.gatherNs()};
            }

            @Override
            public Timeline timeline() {
                return fused.lastResult().timeline();
            }
        };
    }

    /**
     * Collective.
     *
     * @param listener told of rounds now and then; null on all ranks where nobody listens
     */
    public Measured measure(Calls calls, Consumer<Measured> listener) {
        ViewTimes times = ViewTimes.of(iterations);
        Timeline timeline = null;
        int rounds = warmup + iterations;
        long toldNs = System.nanoTime();
        progress.begin("measuring", rounds);
        for (int round = 0; round < rounds; round++) {
            // Warm-up rounds land in the first sample, which the first measured round replaces.
            int at = Math.max(0, round - warmup);
            RankSite.together(world);
            times.computeOnly()[at] = calls.fusedNs(View.COMPUTE_ONLY);
            RankSite.together(world);
            times.commOnly()[at] = calls.fusedNs(View.COMM_ONLY);
            RankSite.together(world);
            long[] gatherThenProduct = calls.sequentialNs();
            times.sequential()[at] = gatherThenProduct[0];
            times.sequentialGather()[at] = gatherThenProduct[1];
            RankSite.together(world);
            long metNs = System.nanoTime();
            long cpuNs = ownCpuNs();
            times.pipelined()[at] = calls.fusedNs(View.PIPELINED);
            times.progressCpu()[at] = ownCpuNs() - cpuNs;
            boolean tells = listener != null && round >= warmup && isTime(toldNs);
            if (round == rounds - 1 || tells) {
                // Clocks of different hosts have nothing in common but the barrier before.
                long originNs = world == null || world.sharesMemory() ? 0 : metNs;
                timeline = calls.timeline().since(originNs);
            }
            if (tells) {
                toldNs = System.nanoTime();
                listener.accept(new Measured(times.first(at + 1), timeline));
            }
            progress.advance(round + 1);
        }
        progress.end();
        return new Measured(times, timeline);
    }

    private long ownCpuNs() {
        return world == null ? 0 : world.ownCpuNs();
    }

    /** All ranks tell of the same round, when the first one finds that it is time. */
    private boolean isTime(long toldNs) {
        boolean own = System.nanoTime() - toldNs >= TELL_NS;
        return world == null ? own : world.exchange(own ? 1 : 0)[0] == 1;
    }
}
