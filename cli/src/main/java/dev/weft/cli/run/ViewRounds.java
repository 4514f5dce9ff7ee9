package dev.weft.cli.run;

import dev.weft.cli.console.Progress;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator;
import dev.weft.op.Operator.View;
import dev.weft.op.Result;
import dev.weft.op.Timeline;
import dev.weft.statistics.Quantiles;
import java.util.Arrays;
import java.util.function.Consumer;

/**
 * Measures the views of a problem on one rank. They alternate, so that a disturbance of the machine
 * affects all of them, and all ranks synchronize before each call.
 *
 * @param world null if the other ranks exist only as host memory
 * @param ofExample whether sequential is as in the Ascend example: the transfers of the call under
 *     test, and then its product
 */
public record ViewRounds(
        Transport world, int warmup, int iterations, Progress progress, boolean ofExample) {

    /** The least time between two reports to a listener. */
    private static final long TELL_NS = 400_000_000L;

    /** Of so many rounds, the latest ones, what the calls did is kept until the median is known. */
    private static final int KEPT = 16;

    /** Of all ranks together, about 300 MB. */
    private static final long MOST_SPANS = 4_000_000;

    /** Rounds with Weft's own sequential view: the fastest gather without overlap. */
    public ViewRounds(Transport world, int warmup, int iterations, Progress progress) {
        this(world, warmup, iterations, progress, false);
    }

    /** What is measured; every call is collective. */
    public interface Calls {

        /** Makes a call, or one of its halves, and returns its time. */
        long fusedNs(View view);

        /** The timeline of the latest call. */
        Timeline timeline();
    }

    /** The times of all rounds, and what the pipelined call nearest to the median did. */
    public record Measured(ViewTimes times, Timeline timeline) {}

    /** The calls of an operator that has its shard in place. */
    public static Calls of(Operator<?> fused) {
        return new Calls() {
            @Override
            public long fusedNs(View view) {
                return fused.callInPlace(view).elapsedNs();
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
     * @param sequential gathers, then multiplies; with its shard in place
     * @param listener receives rounds now and then; null on all ranks if there is none
     */
    public Measured measure(Calls calls, Operator<?> sequential, Consumer<Measured> listener) {
        ViewTimes times = ViewTimes.of(iterations, ofExample);
        Timeline[] timelines = new Timeline[KEPT];
        int kept = KEPT;
        long[] slowest = new long[iterations];
        int rounds = warmup + iterations;
        long toldNs = System.nanoTime();
        progress.begin("measuring", rounds);
        for (int round = 0; round < rounds; round++) {
            // Warm-up rounds go to the first sample, which the first measured round overwrites.
            int at = Math.max(0, round - warmup);
            RankSite.together(world);
            times.computeOnly()[at] = calls.fusedNs(View.COMPUTE_ONLY);
            RankSite.together(world);
            times.commOnly()[at] = calls.fusedNs(View.COMM_ONLY);
            RankSite.together(world);
            Result<?> gatherThenProduct = sequential.callInPlace(View.PIPELINED);
            times.sequential()[at] = gatherThenProduct.elapsedNs();
            times.sequentialGather()[at] = gatherThenProduct.gatherNs();
            if (ofExample) {
                times.baseline()[at] = times.sequential()[at];
                RankSite.together(world);
                times.sequentialGather()[at] = calls.fusedNs(View.COMM_ONLY);
                times.sequential()[at] =
                        times.sequentialGather()[at] + calls.fusedNs(View.COMPUTE_ONLY);
            }
            RankSite.together(world);
            long metNs = System.nanoTime();
            long cpuNs = ownCpuNs();
            times.pipelined()[at] = calls.fusedNs(View.PIPELINED);
            times.progressCpu()[at] = ownCpuNs() - cpuNs;
            boolean tells = listener != null && round >= warmup && isTime(toldNs);
            if (round >= warmup) {
                slowest[at] = slowest(times.pipelined()[at]);
                // Clocks of different hosts have nothing in common but the barrier before.
                long originNs = world == null || world.sharesMemory() ? 0 : metNs;
                Timeline timeline = calls.timeline().since(originNs);
                if (round == warmup) {
                    kept = kept(timeline);
                }
                timelines[at % kept] = timeline;
            }
            if (tells) {
                toldNs = System.nanoTime();
                listener.accept(new Measured(times.first(at + 1), timelines[at % kept]));
            }
            progress.advance(round + 1);
        }
        progress.end();
        return new Measured(times, timelines[nearestToMedian(slowest, kept) % kept]);
    }

    /** How many timelines are kept: fewer if they are long. The same on all ranks. Collective. */
    private int kept(Timeline timeline) {
        long spans = timeline.tracks().stream().mapToLong(track -> track.spans().size()).sum();
        long all = slowest(spans) * (world == null ? 1 : world.size());
        return Math.clamp(MOST_SPANS / Math.max(1, all), 1, KEPT);
    }

    /** The largest value of any rank, such as the time of the slowest. Collective. */
    private long slowest(long own) {
        return world == null ? own : Arrays.stream(world.exchange(own)).max().orElseThrow();
    }

    /** The round, of those that are kept, whose time is nearest to the median of all. */
    static int nearestToMedian(long[] ns, int kept) {
        double median = Quantiles.median(Arrays.stream(ns).asDoubleStream().toArray());
        int nearest = ns.length - 1;
        for (int at = Math.max(0, ns.length - kept); at < ns.length; at++) {
            if (Math.abs(ns[at] - median) < Math.abs(ns[nearest] - median)) {
                nearest = at;
            }
        }
        return nearest;
    }

    private long ownCpuNs() {
        return world == null ? 0 : world.ownCpuNs();
    }

    /** All ranks report the same round, when the first rank finds that it is time. */
    private boolean isTime(long toldNs) {
        boolean own = System.nanoTime() - toldNs >= TELL_NS;
        return world == null ? own : world.exchange(own ? 1 : 0)[0] == 1;
    }
}
