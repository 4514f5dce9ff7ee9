package dev.weft.examples.llm;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/** On the Vector API. */
final class VectorAttentionMath implements AttentionMath {

    private static final VectorSpecies<Float> SPECIES = FloatVector.SPECIES_PREFERRED;
    private static final int LANES = SPECIES.length();
    private static final int BLOCK = 4 * LANES;

    @Override
    public void scores(float[] query, float[] keys, int count, float[] to) {
        int width = query.length;
        for (int place = 0; place < count; place += BLOCK) {
            int first = place / PLACES * PLACES * width + place % PLACES;
            block(query, width, keys, first, PLACES, to, place);
        }
    }

    @Override
    public void mix(float[] powers, int count, float[] values, float[] to) {
        int pitch = to.length;
        int col = 0;
        for (; col + BLOCK <= pitch; col += BLOCK) {
            block(powers, count, values, col, pitch, to, col);
        }
        for (; col + LANES <= pitch; col += LANES) {
            FloatVector sum = FloatVector.zero(SPECIES);
            for (int i = 0; i < count; i++) {
                FloatVector factor = FloatVector.broadcast(SPECIES, powers[i]);
                sum = factor.fma(FloatVector.fromArray(SPECIES, values, i * pitch + col), sum);
            }
            sum.intoArray(to, col);
        }
        for (; col < pitch; col++) {
            float sum = 0;
            for (int i = 0; i < count; i++) {
                sum = Math.fma(powers[i], values[i * pitch + col], sum);
            }
            to[col] = sum;
        }
    }

    /** Four vectors of sums over rows, each of them times a factor. */
    private static void block(
            float[] factors, int rows, float[] from, int first, int pitch, float[] to, int at) {
        FloatVector s0 = FloatVector.zero(SPECIES);
        FloatVector s1 = s0;
        FloatVector s2 = s0;
        FloatVector s3 = s0;
        int row = first;
        for (int i = 0; i < rows; i++) {
            FloatVector factor = FloatVector.broadcast(SPECIES, factors[i]);
            s0 = factor.fma(FloatVector.fromArray(SPECIES, from, row), s0);
            s1 = factor.fma(FloatVector.fromArray(SPECIES, from, row + LANES), s1);
            s2 = factor.fma(FloatVector.fromArray(SPECIES, from, row + 2 * LANES), s2);
            s3 = factor.fma(FloatVector.fromArray(SPECIES, from, row + 3 * LANES), s3);
            row += pitch;
        }
        s0.intoArray(to, at);
        s1.intoArray(to, at + LANES);
        s2.intoArray(to, at + 2 * LANES);
        s3.intoArray(to, at + 3 * LANES);
    }

    @Override
    public void powers(float[] scores, float most, int count) {
        for (int i = 0; i < count; i += LANES) {
            exp(FloatVector.fromArray(SPECIES, scores, i).sub(most)).intoArray(scores, i);
        }
    }

    /** As in {@link PlainAttentionMath}. */
    private static FloatVector exp(FloatVector exponent) {
        FloatVector x = exponent.max(LEAST_EXPONENT);
        FloatVector rounded = constant(LOG2_E).fma(x, constant(ROUNDER));
        FloatVector n = rounded.sub(ROUNDER);
        FloatVector r = n.fma(constant(-LN_2_LOW), n.fma(constant(-LN_2_HIGH), x));
        FloatVector p =
                constant(P5)
                        .fma(r, constant(P4))
                        .fma(r, constant(P3))
                        .fma(r, constant(P2))
                        .fma(r, constant(P1))
                        .fma(r, constant(P0));
        p = p.fma(r.mul(r), r).add(1);
        // The rounder leaves n in the lowest bits.
        return p.mul(
                rounded.reinterpretAsInts()
                        .lanewise(VectorOperators.LSHL, MANTISSA_BITS)
                        .add(BITS_OF_ONE)
                        .reinterpretAsFloats());
    }

    private static FloatVector constant(float value) {
        return FloatVector.broadcast(SPECIES, value);
    }
}
