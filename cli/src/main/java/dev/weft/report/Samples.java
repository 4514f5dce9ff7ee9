package dev.weft.report;

import dev.weft.statistics.Quantiles;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/** Repeated measurements of one thing, in microseconds, in the order in which they were taken. */
public record Samples(List<Double> us) {

    public Samples {
        us = List.copyOf(us);
        if (us.isEmpty()) {
            throw new IllegalArgumentException("no samples: expected at least one");
        }
    }

    public static Samples ofNs(long[] ns) {
        return new Samples(Arrays.stream(ns).mapToObj(value -> value / 1e3).toList());
    }

    /** Samples of rounds that end with the slowest rank; each array has one rank's times. */
    public static Samples ofSlowest(List<long[]> ranksNs) {
        long[] slowest = ranksNs.getFirst().clone();
        ranksNs.forEach(one -> Arrays.setAll(slowest, i -> Math.max(slowest[i], one[i])));
        return ofNs(slowest);
    }

    public double median() {
        return Quantiles.median(values());
    }

    public double mean() {
        return Arrays.stream(values()).average().orElseThrow();
    }

    /** The interquartile range: the middle half of the samples. */
    public double spread() {
        return Quantiles.spread(values());
    }

    private double[] values() {
        return us.stream().mapToDouble(Double::doubleValue).toArray();
    }

    /** Round by round, these minus the others; 0 if the others are larger. */
    public Samples minus(Samples others) {
        return new Samples(
                IntStream.range(0, us.size())
                        .mapToObj(i -> Math.max(0, us.get(i) - others.us.get(i)))
                        .toList());
    }
}
