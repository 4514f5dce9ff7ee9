package dev.weft.gemm.code;

import dev.weft.gemm.code.EpilogueCode.Step;
import java.lang.foreign.MemorySegment;

/**
 * {@link Activations} as plain loops over arrays, which the JIT compiler turns into vector code:
 * for machines for which Weft writes no machine code, and to compare it with. Not thread-safe.
 */
final class ActivationLoops {

    static final double LOG2_E = 1.4426950408889634;
    static final double LN_2 = 0.6931471805599453;

    /** Added to a number, this leaves its nearest integer in the lowest bits. */
    static final double ROUNDER = 0x1.8p52;

    static final long EXPONENT_BIAS = 1023;
    static final int MANTISSA_BITS = 52;

    private static final float FAR_FOR_SILU = Step.SILU.far;
    private static final float FAR_FOR_GELU = Step.GELU.far;

    /** Constants of the tanh form: 2 sqrt(2 / pi), and that times 0.044715. */
    static final double TANH_LINEAR = 1.5957691216057308;

    static final double TANH_CUBIC = 0.07135481627260025;

    static final double MILLS_SHIFT = 3;

    // The fits below, from the highest power on.
    private static final double E6 = 0x1.6ab9524bd976bp-10;
    private static final double E5 = 0x1.126d1d84d575bp-7;
    private static final double E4 = 0x1.55589ac13b096p-5;
    private static final double E3 = 0x1.55540a5c88b11p-3;
    private static final double E2 = 0x1.fffffaae48d6ep-2;
    private static final double E1 = 0x1.0000009c1903fp+0;
    private static final double E0 = 0x1.0000000261e41p+0;
    static final double[] EXPONENTIAL = {E6, E5, E4, E3, E2, E1, E0};

    private static final double M10 = 0x1.9c12592c46e88p+11;
    private static final double M9 = -0x1.aa27135834303p+12;
    private static final double M8 = 0x1.63fead8e00aa8p+12;
    private static final double M7 = -0x1.21cf3dfcb5707p+11;
    private static final double M6 = 0x1.b7fd8a5b39a3fp+8;
    private static final double M5 = -0x1.f31a7c106aea9p+5;
    private static final double M4 = 0x1.2c6c3c6d9a45ep+4;
    private static final double M3 = 0x1.af3009d191f1ap+2;
    private static final double M2 = 0x1.9adfa266c93d5p+1;
    private static final double M1 = 0x1.32467da28f779p+0;
    private static final double M0 = 0x1.988584c21c25fp-2;
    static final double[] MILLS = {M10, M9, M8, M7, M6, M5, M4, M3, M2, M1, M0};

    private final double[] magnitudes = new double[Activations.PIECE];
    private final double[] exponents = new double[Activations.PIECE];
    private final double[] scaled = new double[Activations.PIECE];
    private final double[] powers = new double[Activations.PIECE];
    private final long[] bits = new long[Activations.PIECE];

    // Bits pass through memory: the JIT does not vectorize a loop that reinterprets single values.
    private final MemorySegment scaledBytes = MemorySegment.ofArray(scaled);
    private final MemorySegment powersBytes = MemorySegment.ofArray(powers);
    private final MemorySegment bitsBytes = MemorySegment.ofArray(bits);

    /** As {@link EpilogueCode#apply}, for one of {@link Activations#FUNCTIONS}. */
    void apply(Step step, float[] values, float[] factors, int count) {
        switch (step) {
            case SILU, SILU_TIMES -> {
                magnitudes(values, magnitudes, scaled, count);
                powersOfTwo(count);
                sigmoidTails(magnitudes, magnitudes, scaled, powers, count);
            }
            case GELU -> {
                halfSquares(values, magnitudes, exponents, scaled, count);
                powersOfTwo(count);
                normalTails(magnitudes, exponents, scaled, powers, count);
            }
            case GELU_TANH -> {
                tanhExponents(values, magnitudes, exponents, scaled, count);
                powersOfTwo(count);
                sigmoidTails(magnitudes, exponents, scaled, powers, count);
            }
            default -> throw new IllegalArgumentException(step + ": expected an activation");
        }
        if (step == Step.SILU_TIMES) {
            subtractAndMultiply(values, powers, factors, count);
        } else {
            subtract(values, powers, count);
        }
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
        double p = Math.fma(E6, r, E5);
        p = Math.fma(p, r, E4);
        p = Math.fma(p, r, E3);
        p = Math.fma(p, r, E2);
        p = Math.fma(p, r, E1);
        p = Math.fma(p, r, E0);
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
            double p = Math.fma(M10, u, M9);
            p = Math.fma(p, u, M8);
            p = Math.fma(p, u, M7);
            p = Math.fma(p, u, M6);
            p = Math.fma(p, u, M5);
            p = Math.fma(p, u, M4);
            p = Math.fma(p, u, M3);
            p = Math.fma(p, u, M2);
            p = Math.fma(p, u, M1);
            p = Math.fma(p, u, M0);
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
