package dev.weft.report;

import dev.weft.tune.Quantiles;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/** Repeated measurements of one thing, in microseconds, in the order in which they were taken. */
public record Samples(List<Double> us) {

    /** 95% of what is distributed normally is so near to the mean. */
    private static final double TWO_DEVIATIONS = 1.96;

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
        return Quantiles.median(values());
    }

    public double mean() {
        return Arrays.stream(values()).average().orElseThrow();
    }

    /** The interquartile range: the middle half of the samples. */
    public double spread() {
        return Quantiles.spread(values());
    }

    /**
     * How far the median may be off, with about 95% confidence: half the distance between the
     * samples that many places before and after it. It needs no assumption about how times are
     * distributed; of fewer than four samples it is half their range.
     */
    public double noise() {
        double[] values = values();
        double places = TWO_DEVIATIONS * 0.5 / Math.sqrt(values.length);
        double above = Quantiles.quantile(values, Math.min(1, 0.5 + places));
        return (above - Quantiles.quantile(values, Math.max(0, 0.5 - places))) / 2;
    }

    /**
     * How far this median over that of the others may be off, likewise. Both are of the same
     * rounds: what slowed down both calls of a round has changed their ratio less.
     */
    public double noiseOver(Samples others) {
        double own = noise() / median();
        double other = others.noise() / others.median();
        double combined = own * own + other * other - 2 * agreement(others) * own * other;
        return median() / others.median() * Math.sqrt(Math.max(0, combined));
    }

    /** From -1 to 1: whether both are above, or below, their medians in the same rounds. */
    private double agreement(Samples others) {
        double[] own = signs();
        double[] other = others.signs();
        double alike = 0;
        for (int i = 0; i < Math.min(own.length, other.length); i++) {
            alike += own[i] * other[i];
        }
        double all =
                Math.sqrt(Arrays.stream(own).map(Math::abs).sum())
                        * Math.sqrt(Arrays.stream(other).map(Math::abs).sum());
        return all > 0 ? alike / all : 0;
    }

    /** By round: 1 above the median, -1 below it. */
    private double[] signs() {
        double median = median();
        return Arrays.stream(values()).map(value -> Math.signum(value - median)).toArray();
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
