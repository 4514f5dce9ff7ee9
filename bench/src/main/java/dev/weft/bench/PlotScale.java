package dev.weft.bench;

import java.util.List;

/**
 * Where values lie in an {@link SvgPlot}. Immutable; any thread may call it.
 *
 * @param step from one tick of y to the next, of which there are {@code ticks} above zero
 */
record PlotScale(int firstPower, int lastPower, double step, int ticks) {

    static PlotScale of(List<SvgPlot.Series> series) {
        double least = Double.MAX_VALUE;
        double most = 0;
        double highest = 0;
        for (SvgPlot.Series line : series) {
            for (SvgPlot.Point point : line.points()) {
                least = Math.min(least, point.x());
                most = Math.max(most, point.x());
                highest = Math.max(highest, point.y());
            }
        }
        int first = Math.getExponent(least);
        int last = Math.getExponent(most);
        last += most > Math.scalb(1.0, last) ? 1 : 0;
        double step = step(highest);
        int ticks = (int) Math.max(1, Math.ceil(highest / step));
        return new PlotScale(first, Math.max(last, first + 1), step, ticks);
    }

    /** 1, 2 or 5 times a power of ten, so that there are four to ten ticks. */
    private static double step(double highest) {
        double rough = Math.max(highest, 1e-9) / 5;
        double ten = Math.pow(10, Math.floor(Math.log10(rough)));
        double digit = rough / ten;
        return ten * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : 5);
    }

    double x(double value) {
        double log2 = Math.log(value) / Math.log(2);
        return SvgPlot.LEFT
                + (log2 - firstPower) / (lastPower - firstPower) * (SvgPlot.RIGHT - SvgPlot.LEFT);
    }

    double y(double value) {
        return SvgPlot.BOTTOM - value / (step * ticks) * (SvgPlot.BOTTOM - SvgPlot.TOP);
    }
}
