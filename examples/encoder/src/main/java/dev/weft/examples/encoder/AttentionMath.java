package dev.weft.examples.encoder;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The arithmetic of {@link Attention} for a block of queries. All implementations give the same
 * bits: each element has one order of operations, all of which IEEE 754 defines.
 */
interface AttentionMath {

    /** {@link #multiply} takes a multiple of this many rows. */
    int ROWS = 4;

    // Of exp, after Cephes: e^x = 2^n e^r, with r at most ln(2) / 2 from zero.
    float LEAST_EXPONENT = -87;
    float LOG2_E = 1.44269504f;
    float LN_2_HIGH = 0.693359375f;
    float LN_2_LOW = -2.12194440e-4f;
    float ROUNDER = 0x1.8p23f;
    float P5 = 1.9875691500e-4f;
    float P4 = 1.3981999507e-3f;
    float P3 = 8.3334519073e-3f;
    float P2 = 4.1665795894e-2f;
    float P1 = 1.6666665459e-1f;
    float P0 = 5.0000001201e-1f;
    int MANTISSA_BITS = 23;
    int BITS_OF_ONE = 0x3f800000;

    /** Vectors where Java was started with {@code --add-modules jdk.incubator.vector}. */
    static AttentionMath best() {
        return ModuleLayer.boot().findModule("jdk.incubator.vector").isPresent()
                ? new VectorAttentionMath()
                : new PlainAttentionMath();
    }

    /** How many queries are in a block. */
    int block();

    /** Copies a row of a head, {@link Weights#HEAD_WIDTH} floats. */
    default void copy(MemorySegment from, long fromByte, float[] to, int at) {
        MemorySegment.copy(from, ValueLayout.JAVA_FLOAT, fromByte, to, at, Weights.HEAD_WIDTH);
    }

    /**
     * C = A x B, with {@link #block} columns of B and C.
     *
     * @param rowStep from one row of A to the next
     * @param colStep from one column of A to the next
     * @param inner rows of B
     */
    void multiply(float[] a, int rowStep, int colStep, int rows, int inner, float[] b, float[] c);

    /**
     * Of each query over all keys, but for the factors that make the sums 1.
     *
     * @param scores [key, query]
     */
    void softmax(float[] scores, int keys, float[] factors);
}
