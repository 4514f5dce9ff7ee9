package dev.weft.examples.encoder;

/** In plain Java, for a JVM without the Vector API. */
final class PlainAttentionMath implements AttentionMath {

    private static final int BLOCK = 16;
    private static final int SUMS = 8;

    @Override
    public int block() {
        return BLOCK;
    }

    @Override
    public void multiply(
            float[] a, int rowStep, int colStep, int rows, int inner, float[] b, float[] c) {
        for (int row = 0; row < rows; row++) {
            for (int query = 0; query < BLOCK; query += SUMS) {
                multiply(a, row * rowStep, colStep, inner, b, query, c, row * BLOCK + query);
            }
        }
    }

    /** Eight queries at a time, so that no multiply-add waits for the one before. */
    private static void multiply(
            float[] a, int from, int colStep, int inner, float[] b, int query, float[] c, int to) {
        float s0 = 0;
        float s1 = 0;
        float s2 = 0;
        float s3 = 0;
        float s4 = 0;
        float s5 = 0;
        float s6 = 0;
        float s7 = 0;
        for (int k = 0; k < inner; k++) {
            float factor = a[from + k * colStep];
            int at = k * BLOCK + query;
            s0 = Math.fma(factor, b[at], s0);
            s1 = Math.fma(factor, b[at + 1], s1);
            s2 = Math.fma(factor, b[at + 2], s2);
            s3 = Math.fma(factor, b[at + 3], s3);
            s4 = Math.fma(factor, b[at + 4], s4);
            s5 = Math.fma(factor, b[at + 5], s5);
            s6 = Math.fma(factor, b[at + 6], s6);
            s7 = Math.fma(factor, b[at + 7], s7);
        }
        c[to] = s0;
        c[to + 1] = s1;
        c[to + 2] = s2;
        c[to + 3] = s3;
        c[to + 4] = s4;
        c[to + 5] = s5;
        c[to + 6] = s6;
        c[to + 7] = s7;
    }

    @Override
    public void softmax(float[] scores, int keys, float[] factors) {
        for (int query = 0; query < BLOCK; query++) {
            float most = scores[query];
            for (int key = 1; key < keys; key++) {
                most = Math.max(most, scores[key * BLOCK + query]);
            }
            float sum = 0;
            for (int key = 0; key < keys; key++) {
                float power = exp(scores[key * BLOCK + query] - most);
                scores[key * BLOCK + query] = power;
                sum += power;
            }
            factors[query] = 1 / sum;
        }
    }

    private static float exp(float exponent) {
        float x = Math.max(exponent, LEAST_EXPONENT);
        float rounded = Math.fma(LOG2_E, x, ROUNDER);
        float n = rounded - ROUNDER;
        float r = Math.fma(n, -LN_2_LOW, Math.fma(n, -LN_2_HIGH, x));
        float p = Math.fma(P5, r, P4);
        p = Math.fma(p, r, P3);
        p = Math.fma(p, r, P2);
        p = Math.fma(p, r, P1);
        p = Math.fma(p, r, P0);
        p = Math.fma(p, r * r, r) + 1;
        // The rounder leaves n in the lowest bits.
        int power = (Float.floatToRawIntBits(rounded) << MANTISSA_BITS) + BITS_OF_ONE;
        return p * Float.intBitsToFloat(power);
    }
}
