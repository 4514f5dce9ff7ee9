package dev.weft.report;

import java.util.Arrays;
import java.util.List;

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

    public double median() {
        return quantile(0.5);
    }

    /** The distance between the quartiles: where the middle half of the samples lies. */
    public double spread() {
        return quantile(0.75) - quantile(0.25);
    }

    private double quantile(double q) {
        double[] sorted = us.stream().mapToDouble(Double::doubleValue).sorted().toArray();
        double at = q * (sorted.length - 1);
        int below = (int) at;
        int above = Math.min(below + 1, sorted.length - 1);
        return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
    }
}
