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

    DeviationMeter(Matrix c, long k) {
        this.c = c;
        this.dtype = c.dtype();
        this.relative = ErrorBound.relative(k);
        this.underflow = ErrorBound.underflow(k);
    }

    /**
     * @param magnitude the element of {@code |A| x |B|}
     */
    void add(long row, long col, double expected, double magnitude) {
        float actual = c.get(row, col);
        double chain = relative * magnitude + underflow;
        double ratio;
        if (rightlyNotFinite(actual, expected, chain)) {
            ratio = 0;
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
                worstExpected);
    }

    /**
     * NaN for NaN, and an infinity where the exact value is one or, give or take, rounds to one.
     */
    private boolean rightlyNotFinite(float actual, double expected, double chain) {
        if (Double.isNaN(expected) || Double.isInfinite(expected)) {
            return Double.compare(actual, expected) == 0;
        }
        return Float.isInfinite(actual)
                && Math.signum(actual) == Math.signum(expected)
                && Math.abs(expected) + chain >= ErrorBound.overflowFrom(dtype);
    }
}
