package dev.weft.examples.encoder;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/** On the Vector API. The elements of a vector belong to different queries. */
final class VectorAttentionMath implements AttentionMath {

    private static final VectorSpecies<Float> SPECIES = FloatVector.SPECIES_PREFERRED;
    private static final int LANES = SPECIES.length();
    private static final int BLOCK = 4 * LANES;

    @Override
    public int block() {
        return BLOCK;
    }

    /**
     * C = A x B with {@link #block} columns, four rows at a time: sixteen sums, all in registers
     * where there are 32.
     */
    @Override
    public void multiply(float[] a, int pitch, int rows, int inner, float[] b, float[] c) {
        for (int row = 0; row < rows; row += ROWS) {
            FloatVector s00 = FloatVector.zero(SPECIES);
            FloatVector s01 = s00;
            FloatVector s02 = s00;
            FloatVector s03 = s00;
            FloatVector s10 = s00;
            FloatVector s11 = s00;
            FloatVector s12 = s00;
            FloatVector s13 = s00;
            FloatVector s20 = s00;
            FloatVector s21 = s00;
            FloatVector s22 = s00;
            FloatVector s23 = s00;
            FloatVector s30 = s00;
            FloatVector s31 = s00;
            FloatVector s32 = s00;
            FloatVector s33 = s00;
            int at0 = row * pitch;
            int at1 = at0 + pitch;
            int at2 = at1 + pitch;
            int at3 = at2 + pitch;
            for (int k = 0; k < inner; k++) {
                int at = k * BLOCK;
                FloatVector b0 = FloatVector.fromArray(SPECIES, b, at);
                FloatVector b1 = FloatVector.fromArray(SPECIES, b, at + LANES);
                FloatVector b2 = FloatVector.fromArray(SPECIES, b, at + 2 * LANES);
                FloatVector b3 = FloatVector.fromArray(SPECIES, b, at + 3 * LANES);
                FloatVector a0 = FloatVector.broadcast(SPECIES, a[at0 + k]);
                s00 = a0.fma(b0, s00);
                s01 = a0.fma(b1, s01);
                s02 = a0.fma(b2, s02);
                s03 = a0.fma(b3, s03);
                FloatVector a1 = FloatVector.broadcast(SPECIES, a[at1 + k]);
                s10 = a1.fma(b0, s10);
                s11 = a1.fma(b1, s11);
                s12 = a1.fma(b2, s12);
                s13 = a1.fma(b3, s13);
                FloatVector a2 = FloatVector.broadcast(SPECIES, a[at2 + k]);
                s20 = a2.fma(b0, s20);
                s21 = a2.fma(b1, s21);
                s22 = a2.fma(b2, s22);
                s23 = a2.fma(b3, s23);
                FloatVector a3 = FloatVector.broadcast(SPECIES, a[at3 + k]);
                s30 = a3.fma(b0, s30);
                s31 = a3.fma(b1, s31);
                s32 = a3.fma(b2, s32);
                s33 = a3.fma(b3, s33);
            }
            int at = row * BLOCK;
            store(s00, s01, s02, s03, c, at);
            store(s10, s11, s12, s13, c, at + BLOCK);
            store(s20, s21, s22, s23, c, at + 2 * BLOCK);
            store(s30, s31, s32, s33, c, at + 3 * BLOCK);
        }
    }

    private static void store(
            FloatVector v0, FloatVector v1, FloatVector v2, FloatVector v3, float[] to, int at) {
        v0.intoArray(to, at);
        v1.intoArray(to, at + LANES);
        v2.intoArray(to, at + 2 * LANES);
        v3.intoArray(to, at + 3 * LANES);
    }

    @Override
    public void softmax(float[] scores, int keys, float[] factors) {
        for (int lane = 0; lane < BLOCK; lane += LANES) {
            softmax(scores, lane, keys, factors);
        }
    }

    private static void softmax(float[] scores, int lane, int keys, float[] factors) {
        FloatVector most = FloatVector.fromArray(SPECIES, scores, lane);
        for (int key = 1; key < keys; key++) {
            most = most.max(FloatVector.fromArray(SPECIES, scores, key * BLOCK + lane));
        }
        FloatVector sum = FloatVector.zero(SPECIES);
        for (int key = 0; key < keys; key++) {
            int at = key * BLOCK + lane;
            FloatVector power = exp(FloatVector.fromArray(SPECIES, scores, at).sub(most));
            power.intoArray(scores, at);
            sum = sum.add(power);
        }
        constant(1).div(sum).intoArray(factors, lane);
    }

    /** For exponents that are not positive: see {@link AttentionMath}. */
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
