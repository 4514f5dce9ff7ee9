package dev.weft.bench.measure;

import dev.weft.tune.Quantiles;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;

/**
 * Measures several things that take turns, so that a disturbance of the machine meets all of them.
 * Who begins changes, and every other round goes backwards, so that nobody always follows the same
 * neighbour. First they take turns until none of them gets faster any more; these rounds do not
 * count. Used by one thread.
 */
public final class Interleaved {

    /** Rounds that are compared with as many before them, to see whether things are steady. */
    private static final int WINDOW = 3;

    /** Medians of two windows that differ by less than this part are the same. */
    private static final double STEADY = 0.03;

    private final Effort effort;
    private final LongSupplier clockNs;

    /** One turn of one thing. */
    @FunctionalInterface
    public interface Turn {

        /** Does it once; the nanoseconds that count. */
        long takeNs() throws IOException, InterruptedException;
    }

    /**
     * How long to measure.
     *
     * @param warmUpNs the least time for all turns together until counting begins
     * @param maxWarmUpNs when it begins although things are not steady yet
     * @param measureNs as many rounds as fit into this, within the two limits
     */
    public record Effort(
            long warmUpNs, long maxWarmUpNs, long measureNs, int minRounds, int maxRounds) {

        public static Effort of(boolean quick) {
            return quick
                    ? new Effort(200_000_000L, 3_000_000_000L, 0, 3, 3)
                    : new Effort(1_500_000_000L, 10_000_000_000L, 4_000_000_000L, 15, 201);
        }
    }

    public Interleaved(Effort effort) {
        this(effort, System::nanoTime);
    }

    /**
     * @param clockNs by which the effort is limited; turns measure themselves
     */
    public Interleaved(Effort effort, LongSupplier clockNs) {
        this.effort = effort;
        this.clockNs = clockNs;
    }

    /** What every turn took, by thing and counted round. */
    public record Outcome(long[][] ns) {

        public int rounds() {
            return ns[0].length;
        }

        public double medianNs(int thing) {
            return Quantiles.median(values(thing));
        }

        /** The distance between the quartiles. */
        public double spreadNs(int thing) {
            double[] values = values(thing);
            return Quantiles.spread(values);
        }

        /**
         * Speed of one thing over that of another: the median of the ratios of the rounds, which a
         * change of the machine's speed in the middle leaves alone.
         */
        public double speed(int thing, int other) {
            return medianRatio(values(other), values(thing));
        }

        /** Adds {@code nameMedianNs} and {@code nameSpreadNs}. */
        public void put(Map<String, Double> figures, String name, int thing) {
            figures.put(name + "MedianNs", medianNs(thing));
            figures.put(name + "SpreadNs", spreadNs(thing));
        }

        public double[] values(int thing) {
            return Arrays.stream(ns[thing]).asDoubleStream().toArray();
        }
    }

    /** The median over all rounds of the ratio in one round. */
    public static double medianRatio(double[] above, double[] below) {
        double[] ratios = new double[above.length];
        for (int round = 0; round < ratios.length; round++) {
            ratios[round] = above[round] / below[round];
        }
        return Quantiles.median(ratios);
    }

    public Outcome measure(List<Turn> turns) throws IOException, InterruptedException {
        long roundNs = warmUp(turns);
        long fitting = effort.measureNs / Math.max(1, roundNs);
        return take(turns, 0, Math.clamp(fitting, effort.minRounds, effort.maxRounds));
    }

    /**
     * So many rounds.
     *
     * @param warmup rounds before them that do not count
     */
    public static Outcome take(List<Turn> turns, int warmup, int rounds)
            throws IOException, InterruptedException {
        long[][] ns = new long[turns.size()][rounds];
        for (int round = -warmup; round < rounds; round++) {
            long[] taken = round(turns, round);
            for (int thing = 0; thing < taken.length && round >= 0; thing++) {
                ns[thing][round] = taken[thing];
            }
        }
        return new Outcome(ns);
    }

    /**
     * Which of {@code count} things has the turn at {@code position} of a round.
     *
     * @param round negative ones are allowed
     */
    public static int thing(int round, int position, int count) {
        int step = Math.floorMod(round, 2) == 0 ? position : -position;
        return Math.floorMod(Math.floorDiv(round, 2) + step, count);
    }

    /** How long one round took at last, by the clock. */
    private long warmUp(List<Turn> turns) throws IOException, InterruptedException {
        List<long[]> taken = new ArrayList<>();
        long startNs = clockNs.getAsLong();
        long beforeNs = startNs;
        long roundNs;
        do {
            taken.add(round(turns, taken.size()));
            long nowNs = clockNs.getAsLong();
            roundNs = nowNs - beforeNs;
            beforeNs = nowNs;
        } while (beforeNs - startNs < effort.maxWarmUpNs
                && (beforeNs - startNs < effort.warmUpNs || !steady(taken)));
        return roundNs;
    }

    /** Every thing has one turn. */
    private static long[] round(List<Turn> turns, int number)
            throws IOException, InterruptedException {
        long[] ns = new long[turns.size()];
        for (int i = 0; i < ns.length; i++) {
            int thing = thing(number, i, ns.length);
            ns[thing] = turns.get(thing).takeNs();
        }
        return ns;
    }

    /** Nothing is faster than a moment ago. */
    private static boolean steady(List<long[]> taken) {
        if (taken.size() < 2 * WINDOW) {
            return false;
        }
        for (int thing = 0; thing < taken.getFirst().length; thing++) {
            double earlier = median(taken, thing, taken.size() - 2 * WINDOW);
            double later = median(taken, thing, taken.size() - WINDOW);
            if (later < earlier * (1 - STEADY)) {
                return false;
            }
        }
        return true;
    }

    private static double median(List<long[]> taken, int thing, int from) {
        return Quantiles.median(
                taken.subList(from, from + WINDOW).stream().mapToDouble(ns -> ns[thing]).toArray());
    }
}
