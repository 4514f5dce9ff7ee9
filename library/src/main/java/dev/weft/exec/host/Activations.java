package dev.weft.exec.host;

import java.lang.foreign.MemorySegment;

/**
 * Activation functions of fp32 values, with the same bits on every machine. They are computed in
 * float64, using only operations that IEEE 754 defines exactly, and rounded once. {@link Math#exp}
 * and similar methods are not used: their results may differ between machines. Results, including
 * denormal ones, are within 0.6 units in the last place of the exact value. A NaN gives a NaN with
 * unspecified bits.
 *
 * <p>All three are {@code max(x, -0) - |x| e^-a(|x|) G}: nothing cancels, and for negative x the
 * small result keeps its digits. The loops are plain loops over arrays, which the JIT compiler
 * turns into vector code. Not thread-safe.
 */
public final class Activations {

    /** Values that are processed at a time: all arrays together stay in the nearest cache. */
    static final int PIECE = 512;

    private static final double LOG2_E = 1.4426950408889634;
    private static final double LN_2 = 0.6931471805599453;

    /** Added to a number, this leaves its nearest integer in the lowest bits. */
    private static final double ROUNDER = 0x1.8p52;

    private static final long EXPONENT_BIAS = 1023;
    private static final int MANTISSA_BITS = 52;

    /** From these magnitudes on, fp32 rounds the results for negative x to zero. */
    private static final float FAR_FOR_SILU = 200;

    private static final float FAR_FOR_GELU = 16;

    /** Constants of the tanh form: 2 sqrt(2 / pi), and that times 0.044715. */
    private static final double TANH_LINEAR = 1.5957691216057308;

    private static final double TANH_CUBIC = 0.07135481627260025;

    /** Constants of the fit below. */
    private static final double MILLS_SHIFT = 3;

    private final double[] magnitudes = new double[PIECE];
    private final double[] exponents = new double[PIECE];
    private final double[] scaled = new double[PIECE];
    private final double[] powers = new double[PIECE];
    private final long[] bits = new long[PIECE];

    // Bits pass through memory: the JIT does not vectorize a loop that reinterprets single values.
    private final MemorySegment scaledBytes = MemorySegment.ofArray(scaled);
    private final MemorySegment powersBytes = MemorySegment.ofArray(powers);
    private final MemorySegment bitsBytes = MemorySegment.ofArray(bits);

    /** The larger of the value and +0: +0 for -0, NaN for NaN. */
    public static void relu(float[] values, int count) {
        for (int i = 0; i < count; i++) {
            values[i] = Math.max(values[i], 0f);
        }
    }

    /** x / (1 + e^-x); -0 for minus infinity. */
    public void silu(float[] values, int count) {
        siluTails(values, count);
        subtract(values, powers, count);
    }

    /** silu(x) times {@code factors}, rounded once. */
    public void siluTimes(float[] values, float[] factors, int count) {
        siluTails(values, count);
        subtractAndMultiply(values, powers, factors, count);
    }

    private void siluTails(float[] values, int count) {
        magnitudes(values, magnitudes, scaled, count);
        powersOfTwo(count);
        sigmoidTails(magnitudes, magnitudes, scaled, powers, count);
    }

    /** x Phi(x), where Phi is the normal distribution function; -0 for minus infinity. */
    public void gelu(float[] values, int count) {
        halfSquares(values, magnitudes, exponents, scaled, count);
        powersOfTwo(count);
        normalTails(magnitudes, exponents, scaled, powers, count);
        subtract(values, powers, count);
    }

    /** x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))); -0 for minus infinity. */
    public void geluTanh(float[] values, int count) {
        tanhExponents(values, magnitudes, exponents, scaled, count);
        powersOfTwo(count);
        sigmoidTails(magnitudes, exponents, scaled, powers, count);
        subtract(values, powers, count);
    }

    /** Computes 2^n from the result of {@link #scaled}, which has n in its lowest bits. */
    private void powersOfTwo(int count) {
        long bytes = (long) count * Double.BYTES;
        MemorySegment.copy(scaledBytes, 0, bitsBytes, 0, bytes);
        powersOfTwo(bits, count);
        MemorySegment.copy(bitsBytes, 0, powersBytes, 0, bytes);
    }

    private static void powersOfTwo(long[] bits, int count) {
        for (int i = 0; i < count; i++) {
            bits[i] = (bits[i] + EXPONENT_BIAS) << MANTISSA_BITS;
        }
    }

    /** The nearest integer n to -a log2(e), in the lowest bits. */
    private static double scaled(double a) {
        return Math.fma(-a, LOG2_E, ROUNDER);
    }

    private static void magnitudes(float[] x, double[] t, double[] scaled, int count) {
        for (int i = 0; i < count; i++) {
            double magnitude = Math.min(Math.abs(x[i]), FAR_FOR_SILU);
            t[i] = magnitude;
            scaled[i] = scaled(magnitude);
        }
    }

    private static void halfSquares(
            float[] x, double[] t, double[] exponents, double[] scaled, int count) {
        for (int i = 0; i < count; i++) {
            double magnitude = Math.min(Math.abs(x[i]), FAR_FOR_GELU);
            double a = 0.5 * magnitude * magnitude;
            t[i] = magnitude;
            exponents[i] = a;
            scaled[i] = scaled(a);
        }
    }

    private static void tanhExponents(
            float[] x, double[] t, double[] exponents, double[] scaled, int count) {
        for (int i = 0; i < count; i++) {
            double magnitude = Math.min(Math.abs(x[i]), FAR_FOR_GELU);
            double a = magnitude * Math.fma(TANH_CUBIC, magnitude * magnitude, TANH_LINEAR);
            t[i] = magnitude;
            exponents[i] = a;
            scaled[i] = scaled(a);
        }
    }

    /**
     * e^-a for a from 0 to 700, as 2^n e^r where -a = n ln(2) + r: a least-maximum fit for |r| up
     * to ln(2) / 2, with a relative error of 2^-29.
     */
    private static double exponential(double a, double scaled, double power) {
        double r = Math.fma(-LN_2, scaled - ROUNDER, -a);
        double p = Math.fma(0x1.6ab9524bd976bp-10, r, 0x1.126d1d84d575bp-7);
        p = Math.fma(p, r, 0x1.55589ac13b096p-5);
        p = Math.fma(p, r, 0x1.55540a5c88b11p-3);
        p = Math.fma(p, r, 0x1.fffffaae48d6ep-2);
        p = Math.fma(p, r, 0x1.0000009c1903fp+0);
        p = Math.fma(p, r, 0x1.0000000261e41p+0);
        return power * p;
    }

    /** Leaves t e / (1 + e), where e is e^-a, in place of the powers. */
    private static void sigmoidTails(
            double[] t, double[] a, double[] scaled, double[] powers, int count) {
        for (int i = 0; i < count; i++) {
            double e = exponential(a[i], scaled[i], powers[i]);
            powers[i] = t[i] * e / (1 + e);
        }
    }

    /**
     * Leaves t times the normal distribution's tail beyond t in place of the powers. The tail is
     * e^(-t^2 / 2) u P(u) with u = 1 / (3 + t): a least-maximum fit for t up to 16, with a relative
     * error of 2^-29.9.
     */
    private static void normalTails(
            double[] t, double[] a, double[] scaled, double[] powers, int count) {
        for (int i = 0; i < count; i++) {
            double e = exponential(a[i], scaled[i], powers[i]);
            double u = 1 / (MILLS_SHIFT + t[i]);
            double p = Math.fma(0x1.9c12592c46e88p+11, u, -0x1.aa27135834303p+12);
            p = Math.fma(p, u, 0x1.63fead8e00aa8p+12);
            p = Math.fma(p, u, -0x1.21cf3dfcb5707p+11);
            p = Math.fma(p, u, 0x1.b7fd8a5b39a3fp+8);
            p = Math.fma(p, u, -0x1.f31a7c106aea9p+5);
            p = Math.fma(p, u, 0x1.2c6c3c6d9a45ep+4);
            p = Math.fma(p, u, 0x1.af3009d191f1ap+2);
            p = Math.fma(p, u, 0x1.9adfa266c93d5p+1);
            p = Math.fma(p, u, 0x1.32467da28f779p+0);
            p = Math.fma(p, u, 0x1.988584c21c25fp-2);
            powers[i] = t[i] * e * u * p;
        }
    }

    /** For negative x the result is the tail, negated; for positive x it is x less the tail. */
    private static void subtract(float[] x, double[] tails, int count) {
        for (int i = 0; i < count; i++) {
            x[i] = (float) (Math.max((double) x[i], -0.0) - tails[i]);
        }
    }

    private static void subtractAndMultiply(float[] x, double[] tails, float[] factors, int count) {
        for (int i = 0; i < count; i++) {
            x[i] = (float) ((Math.max((double) x[i], -0.0) - tails[i]) * factors[i]);
        }
    }
}
