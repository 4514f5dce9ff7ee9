package dev.weft.bench.cpu;

/**
 * Chooses N so that the product takes a wanted multiple of the gather, which does not depend on N.
 * The product's time is taken as a straight line through two measured points: a part for reading A,
 * and so much per column. Immutable; any thread may call it.
 *
 * @param gatherNs gathering A, at any N
 * @param fewColumns N of one measured product, which took {@code fewNs}
 * @param manyColumns N of another one, which took {@code manyNs}
 */
record OverlapSizes(
        double gatherNs, long fewColumns, double fewNs, long manyColumns, double manyNs) {

    /** Columns that the engine multiplies in one go: other numbers of them waste some of it. */
    private static final long PANEL = 64;

    /** Below a panel, what a vector holds at least. */
    private static final long LEAST = 8;

    /** Enough for any machine, and a bound where noise has tilted the line. */
    private static final long MOST = 4096;

    /** N for gather : product of about {@code ratio}. */
    long columns(double ratio) {
        // Noise may not turn the line flat: a column costs at least a tenth of what it costs on
        // average.
        double perColumnNs =
                Math.max((manyNs - fewNs) / (manyColumns - fewColumns), 0.1 * manyNs / manyColumns);
        double fixedNs = Math.max(0, manyNs - perColumnNs * manyColumns);
        double exact = (gatherNs / ratio - fixedNs) / perColumnNs;
        long step = exact < 0.75 * PANEL ? LEAST : PANEL;
        return Math.clamp(Math.round(exact / step) * step, LEAST, MOST);
    }
}
