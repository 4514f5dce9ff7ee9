package dev.weft.gemm;

import static java.nio.ByteOrder.LITTLE_ENDIAN;
import static jdk.incubator.vector.FloatVector.broadcast;
import static jdk.incubator.vector.FloatVector.fromArray;
import static jdk.incubator.vector.FloatVector.fromMemorySegment;

import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * Tiles of 4 rows x 2 vectors of the machine's width: 8 sums keep two pipes of latency 4 busy, and
 * with 2 vectors of B and 4 of A they fit 16 vector registers, as AVX2 has them. A third vector per
 * row ran at two thirds of the speed there. Serves every width.
 */
final class Kernel4x2 extends MicroKernel {

    private static final VectorSpecies<Float> SPECIES = FloatVector.SPECIES_PREFERRED;
    private static final int LANES = SPECIES.length();
    private static final int COLS = 2 * LANES;
    private static final long VECTOR_BYTES = (long) LANES * Float.BYTES;
    private static final long PANEL_ROW_BYTES = 2 * VECTOR_BYTES;

    Kernel4x2() {
        super(4, COLS, SPECIES);
    }

    @Override
    void accumulate(
            float[] a, int at, MemorySegment b, long bFrom, int depth, float[] sums, int sumsFrom) {
        int row0 = sumsFrom;
        int row1 = row0 + COLS;
        int row2 = row1 + COLS;
        int row3 = row2 + COLS;
        FloatVector s00 = fromArray(SPECIES, sums, row0);
        FloatVector s01 = fromArray(SPECIES, sums, row0 + LANES);
        FloatVector s10 = fromArray(SPECIES, sums, row1);
        FloatVector s11 = fromArray(SPECIES, sums, row1 + LANES);
        FloatVector s20 = fromArray(SPECIES, sums, row2);
        FloatVector s21 = fromArray(SPECIES, sums, row2 + LANES);
        FloatVector s30 = fromArray(SPECIES, sums, row3);
        FloatVector s31 = fromArray(SPECIES, sums, row3 + LANES);
        for (int k = 0; k < depth; k++) {
            int aAt = at + k;
            long bAt = bFrom + k * PANEL_ROW_BYTES;
            FloatVector b0 = fromMemorySegment(SPECIES, b, bAt, LITTLE_ENDIAN);
            FloatVector b1 = fromMemorySegment(SPECIES, b, bAt + VECTOR_BYTES, LITTLE_ENDIAN);
            FloatVector a0 = broadcast(SPECIES, a[aAt]);
            s00 = a0.fma(b0, s00);
            s01 = a0.fma(b1, s01);
            FloatVector a1 = broadcast(SPECIES, a[aAt + DEPTH]);
            s10 = a1.fma(b0, s10);
            s11 = a1.fma(b1, s11);
            FloatVector a2 = broadcast(SPECIES, a[aAt + 2 * DEPTH]);
            s20 = a2.fma(b0, s20);
            s21 = a2.fma(b1, s21);
            FloatVector a3 = broadcast(SPECIES, a[aAt + 3 * DEPTH]);
            s30 = a3.fma(b0, s30);
            s31 = a3.fma(b1, s31);
        }
        s00.intoArray(sums, row0);
        s01.intoArray(sums, row0 + LANES);
        s10.intoArray(sums, row1);
        s11.intoArray(sums, row1 + LANES);
        s20.intoArray(sums, row2);
        s21.intoArray(sums, row2 + LANES);
        s30.intoArray(sums, row3);
        s31.intoArray(sums, row3 + LANES);
    }
}
