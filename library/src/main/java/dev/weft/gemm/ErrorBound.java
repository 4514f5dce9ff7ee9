package dev.weft.gemm;

import dev.weft.tensor.DType;

/**
 * The bound on the deviation of a product from the exact one: {@code 2 sqrt(K) eps32 (|A| x |B|)}
 * for the chain of fp32 multiply-adds, and one rounding to the output type. Pure functions.
 */
public final class ErrorBound {

    private static final double EPS32 = 0x1p-23;

    /** Below the normal range a step may lose up to this much, however small its operands are. */
    private static final double SMALLEST_FP32 = 0x1p-149;

    private ErrorBound() {}

    /** The share of {@code |A| x |B|} that K steps may lose. */
    static double relative(long k) {
        return 2 * Math.sqrt(k) * EPS32;
    }

    /** What K steps may lose to underflow, in addition to {@link #relative}. */
    static double underflow(long k) {
        return 2 * Math.sqrt(k) * SMALLEST_FP32;
    }

    /** What rounding to {@code dtype} may lose for a value of this size: half a unit. */
    public static double rounding(DType dtype, double magnitude) {
        int exponent = Math.max(Math.getExponent(magnitude), minExponent(dtype));
        return Math.scalb(dtype.epsilon() / 2, Math.min(exponent, maxExponent(dtype)));
    }

    /** The smallest magnitude that {@code dtype} rounds to infinity; types with scales never do. */
    static double overflowFrom(DType dtype) {
        if (dtype.isScaled()) {
            return Double.POSITIVE_INFINITY;
        }
        return Math.scalb(2 - dtype.epsilon() / 2, maxExponent(dtype));
    }

    private static int minExponent(DType dtype) {
        return switch (dtype) {
            case FP32, BF16 -> -126;
            case FP16, E5M2 -> -14;
            case E4M3 -> -6;
        };
    }

    private static int maxExponent(DType dtype) {
        return Math.getExponent(dtype.max());
    }
}
