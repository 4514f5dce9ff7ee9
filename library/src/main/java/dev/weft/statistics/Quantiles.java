package dev.weft.statistics;

import java.util.Arrays;

/** Quantiles of measurements, between the two nearest where none lies there. Any thread. */
public final class Quantiles {

    private Quantiles() {}

    /**
     * @param values in any order, at least one; left as they are
     */
    public static double median(double... values) {
        return quantile(values, 0.5);
    }

    /** The distance between the quartiles: where the middle half of the values lies. */
    public static double spread(double... values) {
        return quantile(values, 0.75) - quantile(values, 0.25);
    }

    /**
     * The value below which so many of the values lie, in between two of them where need be.
     *
     * @param q 0 to 1
     */
    public static double quantile(double[] values, double q) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        double at = q * (sorted.length - 1);
        int below = (int) at;
        int above = Math.min(below + 1, sorted.length - 1);
        return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
    }
}
