package dev.weft.cli.run;

import dev.weft.cli.console.Progress;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator;
import dev.weft.op.Result;
import dev.weft.report.Samples;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import dev.weft.tune.Quantiles;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/**
 * Measures the views of a problem on one rank. They alternate, so that a disturbance of the machine
 * affects all of them, and all ranks synchronize before each call.
 *
 * @param world null if the other ranks exist only as host memory
 * @param iterations measured rounds; 0 for as many as it takes to know what overlap saves, see
 *     docs/run-record.md
 * @param ofExample whether sequential is as in the Ascend example: the transfers of the call under
 *     test, and then its product
 */
public record ViewRounds(
        Transport world, int warmup, int iterations, Progress progress, boolean ofExample) {

    /** Rounds if no number is given: so many, and then more while they are worth it. */
    static final int LEAST = 10;

    static final int MOST = 100;

    /** Time for more rounds than the least. */
    private static final long MORE_NS = 5_000_000_000L;

    /** What overlap saves is known well enough if it is known to so much of sequential's time. */
    private static final double NARROW = 0.01;

    /** The least time between two reports to a listener. */
    private static final long REPORT_NS = 400_000_000L;

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

        /** Whether these are calls of this operator, so that two of them are the same. */
        default boolean areOf(Operator<?> operator) {
            return false;
        }
    }

    /** The times of all rounds, and what the pipelined call nearest to the median did. */
    public record Measured(List<RoundTimes> times, Timeline timeline) {}

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

            @Override
            public boolean areOf(Operator<?> operator) {
                return operator == fused;
            }
        };
    }

    /**
     * Collective.
     *
     * @param sequential gathers, then multiplies; with its shard in place. If it is the measured
     *     operator itself, its call is made once a round and is both views
     * @param listener receives rounds now and then; null on all ranks if there is none
     */
    public Measured measure(Calls calls, Operator<?> sequential, Consumer<Measured> listener) {
        int least = iterations > 0 ? iterations : LEAST;
        List<RoundTimes> times = new ArrayList<>();
        Slowest slowest = new Slowest(new ArrayList<>(), new ArrayList<>());
        Timeline[] timelines = new Timeline[KEPT];
        int kept = KEPT;
        long reportedNs = System.nanoTime();
        long moreSinceNs = 0;
        long beganNs = reportedNs;
        int done = 0;
        progress.begin("measuring", warmup + least);
        for (int round = 0; done < least || isMore(slowest, moreSinceNs, beganNs); round++) {
            beganNs = System.nanoTime();
            Round one = round(calls, sequential);
            if (round < warmup) {
                progress.advance(round + 1);
                continue;
            }
            times.add(one.times());
            slowest.sequential.add((double) slowest(one.times().sequential()));
            slowest.pipelined.add((double) slowest(one.times().pipelined()));
            Timeline timeline = calls.timeline().since(one.originNs());
            if (done == 0) {
                kept = kept(timeline);
            }
            timelines[done % kept] = timeline;
            done++;
            if (listener != null && isTime(reportedNs)) {
                reportedNs = System.nanoTime();
                listener.accept(new Measured(List.copyOf(times), timeline));
            }
            if (done < least) {
                progress.advance(round + 1);
            } else if (done == least && iterations == 0) {
                moreSinceNs = System.nanoTime();
                progress.begin("measuring more rounds, as times vary", MORE_NS);
            } else if (iterations == 0) {
                progress.advance(System.nanoTime() - moreSinceNs);
            }
        }
        progress.end();
        long[] pipelined = slowest.pipelined.stream().mapToLong(Double::longValue).toArray();
        int nearest = nearestToMedian(pipelined, kept);
        return new Measured(List.copyOf(times), timelines[nearest % kept]);
    }

    /** The slowest rank's times of each round, which all ranks know. */
    private record Slowest(List<Double> sequential, List<Double> pipelined) {

        /** How far the share that overlap saves may be off. */
        double noise() {
            return new Samples(pipelined).noiseOver(new Samples(sequential));
        }
    }

    /**
     * @param originNs the time that its timeline is to start from
     */
    private record Round(RoundTimes times, long originNs) {}

    private Round round(Calls calls, Operator<?> sequential) {
        RankSite.barrier(world);
        long computeOnly = calls.fusedNs(View.COMPUTE_ONLY);
        RankSite.barrier(world);
        long commOnly = calls.fusedNs(View.COMM_ONLY);
        RankSite.barrier(world);
        long releasedNs = System.nanoTime();
        long cpuNs = ownCpuNs();
        Result<?> unfused = sequential.callInPlace(View.PIPELINED);
        long sequentialNs = unfused.elapsedNs();
        long exchangeNs = unfused.gatherNs();
        if (ofExample) {
            RankSite.barrier(world);
            exchangeNs = calls.fusedNs(View.COMM_ONLY);
            sequentialNs = exchangeNs + calls.fusedNs(View.COMPUTE_ONLY);
        }
        long pipelined = sequentialNs;
        RankSite.barrier(world);
        if (ofExample || !calls.areOf(sequential)) {
            releasedNs = System.nanoTime();
            cpuNs = ownCpuNs();
            pipelined = calls.fusedNs(View.PIPELINED);
        }
        RoundTimes times =
                new RoundTimes(
                        computeOnly,
                        commOnly,
                        sequentialNs,
                        exchangeNs,
                        pipelined,
                        ofExample ? unfused.elapsedNs() : -1,
                        ownCpuNs() - cpuNs);
        // Clocks of different hosts have nothing in common but the barrier before.
        return new Round(times, world == null || world.sharesMemory() ? 0 : releasedNs);
    }

    /**
     * Whether another round is measured although there are enough: if nobody has given their
     * number, the first rank decides for all. Collective.
     */
    private boolean isMore(Slowest slowest, long sinceNs, long roundBeganNs) {
        if (iterations > 0) {
            return false;
        }
        long now = System.nanoTime();
        long spentNs = now - sinceNs + (now - roundBeganNs);
        boolean more = isMore(slowest.pipelined.size(), slowest.noise(), spentNs);
        return world == null ? more : world.exchange(more ? 1 : 0)[0] == 1;
    }

    /**
     * Whether another round is worth it.
     *
     * @param noise how far the share that overlap saves may be off
     * @param spentNs for the rounds beyond the least, with the next one
     */
    static boolean isMore(int done, double noise, long spentNs) {
        // A noise that is not a number tells nothing: more rounds may.
        return done < MOST && !(noise <= NARROW) && spentNs <= MORE_NS;
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
    private boolean isTime(long reportedNs) {
        boolean own = System.nanoTime() - reportedNs >= REPORT_NS;
        return world == null ? own : world.exchange(own ? 1 : 0)[0] == 1;
    }
}
