package dev.weft.gemm;

/**
 * The deviation of a product from the float64 oracle. Infinities and NaNs that the oracle expects
 * count as exact; others make {@link #boundRatio} and {@link #maxAbsErr} infinite.
 *
 * @param elements elements compared
 * @param boundRatio the largest error as a share of what is allowed there; up to 1 is correct
 * @param maxAbsErr the largest {@code |actual - expected|}
 * @param maxAbsExpected the largest finite {@code |expected|}
 * @param row row of the element with the largest share; -1 if nothing was compared
 * @param col its column
 * @param actual its value
 * @param expected the oracle's value for it
 * @param notFinite elements that are infinite or NaN, as expected
 */
public record Deviation(
        long elements,
        double boundRatio,
        double maxAbsErr,
        double maxAbsExpected,
        long row,
        long col,
        float actual,
        double expected,
        long notFinite) {

    private static final double NEVER_ZERO = 1e-9;

    /** Nothing compared yet. */
    static final Deviation NONE = new Deviation(0, 0, 0, 0, -1, -1, 0f, 0, 0);

    public boolean withinBound() {
        return boundRatio <= 1;
    }

    /** {@code max |actual - expected| / (max |expected| + 1e-9)}. */
    public double relErr() {
        return maxAbsErr / (maxAbsExpected + NEVER_ZERO);
    }

    /** A description in one line, for messages. */
    public String describe() {
        return String.format(
                "%d elements, max_abs_err %.3e, rel_err %.3e, %.3g of the bound at [%d, %d]: %.9g instead of %.9g",
                elements, maxAbsErr, relErr(), boundRatio, row, col, actual, expected);
    }

    /** Both together, in either order. */
    Deviation merge(Deviation other) {
        Deviation worst = worseThan(other) ? this : other;
        return new Deviation(
                elements + other.elements,
                worst.boundRatio,
                Math.max(maxAbsErr, other.maxAbsErr),
                Math.max(maxAbsExpected, other.maxAbsExpected),
                worst.row,
                worst.col,
                worst.actual,
                worst.expected,
                notFinite + other.notFinite);
    }

    private boolean worseThan(Deviation other) {
        if (boundRatio != other.boundRatio) {
            return boundRatio > other.boundRatio;
        }
        if (row < 0 || other.row < 0) {
            return row >= 0;
        }
        return row != other.row ? row < other.row : col < other.col;
    }
}
