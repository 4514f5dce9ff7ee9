package dev.weft.gemm;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;

/** Measures elements of an output one by one against the oracle's values. For one thread. */
final class DeviationMeter {

    private final Matrix c;
    private final DType dtype;
    private final double relative;
    private final double underflow;
    private long elements;
    private double boundRatio = -1;
    private double maxAbsErr;
    private double maxAbsExpected;
    private long worstRow = -1;
    private long worstCol = -1;
    private double worstExpected;
    private long notFinite;

    DeviationMeter(Matrix c, long k, Loss more) {
        this.c = c;
        this.dtype = c.dtype();
        this.relative = ErrorBound.relative(k) + more.share();
        this.underflow = ErrorBound.underflow(k) + more.least();
    }

    /** {@code magnitude} is the element of {@code |A| x |B|}. */
    void add(long row, long col, double expected, double magnitude) {
        float actual = c.get(row, col);
        double chain = relative * magnitude + underflow;
        double ratio;
        if (!Float.isFinite(actual) && rightlyNotFinite(actual, expected, magnitude, chain)) {
            ratio = 0;
            notFinite++;
        } else if (Float.isFinite(actual) && Double.isFinite(expected)) {
            double error = Math.abs(actual - expected);
            // The chain's result, which is what was rounded, may be larger than the exact value.
            ratio = error / (chain + ErrorBound.rounding(dtype, Math.abs(expected) + chain));
            maxAbsErr = Math.max(maxAbsErr, error);
            maxAbsExpected = Math.max(maxAbsExpected, Math.abs(expected));
        } else {
            ratio = Double.POSITIVE_INFINITY;
            maxAbsErr = Double.POSITIVE_INFINITY;
        }
        elements++;
        if (ratio > boundRatio) {
            boundRatio = ratio;
            worstRow = row;
            worstCol = col;
            worstExpected = expected;
        }
    }

    Deviation result() {
        if (elements == 0) {
            return Deviation.NONE;
        }
        return new Deviation(
                elements,
                boundRatio,
                maxAbsErr,
                maxAbsExpected,
                worstRow,
                worstCol,
                c.get(worstRow, worstCol),
                worstExpected,
                notFinite);
    }

    /**
     * If inputs are infinite or NaN, so is the exact value, and nothing else is correct. If they
     * are finite, an infinity is correct if the exact value, within its error, rounds to one in the
     * output's type, or if a sum in fp32 can have reached it: no partial sum, in any order, is
     * above the sum of the positive terms or below that of the negative ones. NaN is the sum of two
     * such infinities.
     */
    private boolean rightlyNotFinite(
            float actual, double expected, double magnitude, double chain) {
        if (!Double.isFinite(expected)) {
            return Double.compare(actual, expected) == 0;
        }
        double limit = ErrorBound.overflowFrom(DType.FP32);
        boolean up = (magnitude + expected) / 2 + chain >= limit;
        boolean down = (magnitude - expected) / 2 + chain >= limit;
        if (Float.isNaN(actual)) {
            return up && down;
        }
        boolean rounds =
                Math.signum(actual) == Math.signum(expected)
                        && Math.abs(expected) + chain >= ErrorBound.overflowFrom(dtype);
        return rounds || (actual > 0 ? up : down);
    }
}
