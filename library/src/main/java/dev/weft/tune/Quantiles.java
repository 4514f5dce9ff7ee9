package dev.weft.tune;

import java.util.Arrays;

/** Quantiles of measurements, interpolated between the two nearest. Thread-safe. */
public final class Quantiles {

    private Quantiles() {}

    /**
     * @param values in any order, at least one; not changed
     */
    public static double median(double... values) {
        return quantile(values, 0.5);
    }

    /** The interquartile range: the middle half of the values. */
    public static double spread(double... values) {
        return quantile(values, 0.75) - quantile(values, 0.25);
    }

    /**
     * The value below which this part of the values lies, interpolated if necessary.
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
