package dev.weft.examples.llm;

import java.util.Arrays;

/** In plain Java. */
final class PlainAttentionMath implements AttentionMath {

    @Override
    public void scores(float[] query, float[] keys, int count, float[] to) {
        Arrays.fill(to, 0);
        for (int place = 0; place < count; place += PLACES) {
            for (int col = 0; col < query.length; col++) {
                add(query[col], keys, place * query.length + col * PLACES, to, place, PLACES);
            }
        }
    }

    @Override
    public void powers(float[] scores, float most, int count) {
        for (int i = 0; i < count; i++) {
            scores[i] = exp(scores[i] - most);
        }
    }

    @Override
    public void mix(float[] powers, int count, float[] values, float[] to) {
        Arrays.fill(to, 0);
        for (int place = 0; place < count; place++) {
            add(powers[place], values, place * to.length, to, 0, to.length);
        }
    }

    private static void add(float factor, float[] from, int first, float[] to, int at, int count) {
        for (int i = 0; i < count; i++) {
            to[at + i] = Math.fma(factor, from[first + i], to[at + i]);
        }
    }

    /** For exponents that are not positive. */
    static float exp(float exponent) {
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
