package dev.weft.gemm;

import java.lang.foreign.MemorySegment;
import java.nio.ByteOrder;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * Tiles of 8 rows x 3 vectors of 512 bits: 24 sums, 3 vectors of B and one of A fit the 32 vector
 * registers of AVX-512.
 */
final class Kernel8x3 extends MicroKernel {

    private static final VectorSpecies<Float> SPECIES = FloatVector.SPECIES_512;
    private static final int LANES = SPECIES.length();
    private static final int COLS = 3 * LANES;
    private static final long VECTOR_BYTES = (long) LANES * Float.BYTES;
    private static final long PANEL_ROW_BYTES = 3 * VECTOR_BYTES;

    @Override
    int rows() {
        return 8;
    }

    @Override
    int cols() {
        return COLS;
    }

    @Override
    int vectorBits() {
        return SPECIES.vectorBitSize();
    }

    @Override
    void accumulate(
            float[] a,
            int aFrom,
            MemorySegment b,
            long bOffset,
            int depth,
            float[] sums,
            int sumsFrom,
            int pitch) {
        int row0 = sumsFrom;
        int row1 = row0 + pitch;
        int row2 = row1 + pitch;
        int row3 = row2 + pitch;
        int row4 = row3 + pitch;
        int row5 = row4 + pitch;
        int row6 = row5 + pitch;
        int row7 = row6 + pitch;
        FloatVector s00 = load(sums, row0);
        FloatVector s01 = load(sums, row0 + LANES);
        FloatVector s02 = load(sums, row0 + 2 * LANES);
        FloatVector s10 = load(sums, row1);
        FloatVector s11 = load(sums, row1 + LANES);
        FloatVector s12 = load(sums, row1 + 2 * LANES);
        FloatVector s20 = load(sums, row2);
        FloatVector s21 = load(sums, row2 + LANES);
        FloatVector s22 = load(sums, row2 + 2 * LANES);
        FloatVector s30 = load(sums, row3);
        FloatVector s31 = load(sums, row3 + LANES);
        FloatVector s32 = load(sums, row3 + 2 * LANES);
        FloatVector s40 = load(sums, row4);
        FloatVector s41 = load(sums, row4 + LANES);
        FloatVector s42 = load(sums, row4 + 2 * LANES);
        FloatVector s50 = load(sums, row5);
        FloatVector s51 = load(sums, row5 + LANES);
        FloatVector s52 = load(sums, row5 + 2 * LANES);
        FloatVector s60 = load(sums, row6);
        FloatVector s61 = load(sums, row6 + LANES);
        FloatVector s62 = load(sums, row6 + 2 * LANES);
        FloatVector s70 = load(sums, row7);
        FloatVector s71 = load(sums, row7 + LANES);
        FloatVector s72 = load(sums, row7 + 2 * LANES);
        for (int k = 0; k < depth; k++) {
            int aAt = aFrom + k;
            long bAt = bOffset + k * PANEL_ROW_BYTES;
            FloatVector b0 = load(b, bAt);
            FloatVector b1 = load(b, bAt + VECTOR_BYTES);
            FloatVector b2 = load(b, bAt + 2 * VECTOR_BYTES);
            FloatVector a0 = FloatVector.broadcast(SPECIES, a[aAt]);
            s00 = a0.fma(b0, s00);
            s01 = a0.fma(b1, s01);
            s02 = a0.fma(b2, s02);
            FloatVector a1 = FloatVector.broadcast(SPECIES, a[aAt + DEPTH]);
            s10 = a1.fma(b0, s10);
            s11 = a1.fma(b1, s11);
            s12 = a1.fma(b2, s12);
            FloatVector a2 = FloatVector.broadcast(SPECIES, a[aAt + 2 * DEPTH]);
            s20 = a2.fma(b0, s20);
            s21 = a2.fma(b1, s21);
            s22 = a2.fma(b2, s22);
            FloatVector a3 = FloatVector.broadcast(SPECIES, a[aAt + 3 * DEPTH]);
            s30 = a3.fma(b0, s30);
            s31 = a3.fma(b1, s31);
            s32 = a3.fma(b2, s32);
            FloatVector a4 = FloatVector.broadcast(SPECIES, a[aAt + 4 * DEPTH]);
            s40 = a4.fma(b0, s40);
            s41 = a4.fma(b1, s41);
            s42 = a4.fma(b2, s42);
            FloatVector a5 = FloatVector.broadcast(SPECIES, a[aAt + 5 * DEPTH]);
            s50 = a5.fma(b0, s50);
            s51 = a5.fma(b1, s51);
            s52 = a5.fma(b2, s52);
            FloatVector a6 = FloatVector.broadcast(SPECIES, a[aAt + 6 * DEPTH]);
            s60 = a6.fma(b0, s60);
            s61 = a6.fma(b1, s61);
            s62 = a6.fma(b2, s62);
            FloatVector a7 = FloatVector.broadcast(SPECIES, a[aAt + 7 * DEPTH]);
            s70 = a7.fma(b0, s70);
            s71 = a7.fma(b1, s71);
            s72 = a7.fma(b2, s72);
        }
        s00.intoArray(sums, row0);
        s01.intoArray(sums, row0 + LANES);
        s02.intoArray(sums, row0 + 2 * LANES);
        s10.intoArray(sums, row1);
        s11.intoArray(sums, row1 + LANES);
        s12.intoArray(sums, row1 + 2 * LANES);
        s20.intoArray(sums, row2);
        s21.intoArray(sums, row2 + LANES);
        s22.intoArray(sums, row2 + 2 * LANES);
        s30.intoArray(sums, row3);
        s31.intoArray(sums, row3 + LANES);
        s32.intoArray(sums, row3 + 2 * LANES);
        s40.intoArray(sums, row4);
        s41.intoArray(sums, row4 + LANES);
        s42.intoArray(sums, row4 + 2 * LANES);
        s50.intoArray(sums, row5);
        s51.intoArray(sums, row5 + LANES);
        s52.intoArray(sums, row5 + 2 * LANES);
        s60.intoArray(sums, row6);
        s61.intoArray(sums, row6 + LANES);
        s62.intoArray(sums, row6 + 2 * LANES);
        s70.intoArray(sums, row7);
        s71.intoArray(sums, row7 + LANES);
        s72.intoArray(sums, row7 + 2 * LANES);
    }

    private static FloatVector load(float[] data, int from) {
        return FloatVector.fromArray(SPECIES, data, from);
    }

    private static FloatVector load(MemorySegment data, long offset) {
        return FloatVector.fromMemorySegment(SPECIES, data, offset, ByteOrder.LITTLE_ENDIAN);
    }
}
