package dev.weft.bench.cpu;

import dev.weft.plan.Algorithm;
import dev.weft.statistics.Quantiles;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * How good the choices of {@code auto} were over many problems. Immutable; any thread may call it.
 */
record AutoSummary(List<AutoTimes> times) {

    private static final int PROBLEMS = 60;
    private static final double NEAR_BEST = 0.9;

    /** Where one algorithm is best more often, to choose well is no art. */
    private static final double MOST_OFTEN_BEST = 0.6;

    AutoSummary {
        times = List.copyOf(times);
        if (times.isEmpty()) {
            throw new IllegalArgumentException("a summary of no problems: expected one or more");
        }
    }

    /** The part of the problems in which auto was near the best. */
    double nearBest() {
        return (double) times.stream().filter(AutoTimes::isNearBest).count() / times.size();
    }

    long slowerThanSequential() {
        return times.stream().filter(AutoTimes::isSlowerThanSequential).count();
    }

    /** The part of the problems in which an algorithm was the best. */
    double bestShare(Algorithm algorithm) {
        long best = times.stream().filter(t -> t.best().equals(algorithm.label())).count();
        return (double) best / times.size();
    }

    private double largestBestShare() {
        double largest = 0;
        for (Algorithm algorithm : Algorithm.values()) {
            largest = Math.max(largest, bestShare(algorithm));
        }
        return largest;
    }

    boolean passes() {
        return times.size() >= PROBLEMS
                && nearBest() >= NEAR_BEST
                && slowerThanSequential() == 0
                && largestBestShare() <= MOST_OFTEN_BEST;
    }

    /** The median speed of auto over that of the best. */
    double speed() {
        return Quantiles.median(times.stream().mapToDouble(t -> 1 / t.overBest()).toArray());
    }

    Map<String, Double> figures() {
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("problems", (double) times.size());
        figures.put("nearBest", nearBest());
        figures.put("slowerThanSequential", (double) slowerThanSequential());
        figures.put("largestBestShare", largestBestShare());
        for (Algorithm algorithm : Algorithm.values()) {
            if (algorithm != Algorithm.AUTO) {
                figures.put(
                        AutoTimes.camelCase(algorithm.label()) + "BestShare", bestShare(algorithm));
            }
        }
        figures.put("pass", passes() ? 1.0 : 0.0);
        return figures;
    }
}
