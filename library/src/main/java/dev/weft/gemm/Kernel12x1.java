package dev.weft.gemm;

import static java.nio.ByteOrder.LITTLE_ENDIAN;
import static jdk.incubator.vector.FloatVector.broadcast;
import static jdk.incubator.vector.FloatVector.fromArray;
import static jdk.incubator.vector.FloatVector.fromMemorySegment;

import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/** For a last panel of {@link Kernel6x4} that is one vector wide: two tiles of rows at a time. */
final class Kernel12x1 extends MicroKernel {

    private static final VectorSpecies<Float> SPECIES = FloatVector.SPECIES_512;
    private static final int COLS = Kernel6x4.COLS;
    private static final long PANEL_ROW_BYTES = (long) COLS * Float.BYTES;

    Kernel12x1() {
        super(12, Kernel6x4.COLS, SPECIES);
    }

    @Override
    void accumulate(
            float[] a, int at, MemorySegment b, long bFrom, int depth, float[] sums, int sumsFrom) {
        FloatVector s0 = fromArray(SPECIES, sums, sumsFrom);
        FloatVector s1 = fromArray(SPECIES, sums, sumsFrom + COLS);
        FloatVector s2 = fromArray(SPECIES, sums, sumsFrom + 2 * COLS);
        FloatVector s3 = fromArray(SPECIES, sums, sumsFrom + 3 * COLS);
        FloatVector s4 = fromArray(SPECIES, sums, sumsFrom + 4 * COLS);
        FloatVector s5 = fromArray(SPECIES, sums, sumsFrom + 5 * COLS);
        FloatVector s6 = fromArray(SPECIES, sums, sumsFrom + 6 * COLS);
        FloatVector s7 = fromArray(SPECIES, sums, sumsFrom + 7 * COLS);
        FloatVector s8 = fromArray(SPECIES, sums, sumsFrom + 8 * COLS);
        FloatVector s9 = fromArray(SPECIES, sums, sumsFrom + 9 * COLS);
        FloatVector s10 = fromArray(SPECIES, sums, sumsFrom + 10 * COLS);
        FloatVector s11 = fromArray(SPECIES, sums, sumsFrom + 11 * COLS);
        for (int k = 0; k < depth; k++) {
            int aAt = at + k;
            long bAt = bFrom + k * PANEL_ROW_BYTES;
            FloatVector b0 = fromMemorySegment(SPECIES, b, bAt, LITTLE_ENDIAN);
            FloatVector a0 = broadcast(SPECIES, a[aAt]);
            s0 = a0.fma(b0, s0);
            FloatVector a1 = broadcast(SPECIES, a[aAt + DEPTH]);
            s1 = a1.fma(b0, s1);
            FloatVector a2 = broadcast(SPECIES, a[aAt + 2 * DEPTH]);
            s2 = a2.fma(b0, s2);
            FloatVector a3 = broadcast(SPECIES, a[aAt + 3 * DEPTH]);
            s3 = a3.fma(b0, s3);
            FloatVector a4 = broadcast(SPECIES, a[aAt + 4 * DEPTH]);
            s4 = a4.fma(b0, s4);
            FloatVector a5 = broadcast(SPECIES, a[aAt + 5 * DEPTH]);
            s5 = a5.fma(b0, s5);
            FloatVector a6 = broadcast(SPECIES, a[aAt + 6 * DEPTH]);
            s6 = a6.fma(b0, s6);
            FloatVector a7 = broadcast(SPECIES, a[aAt + 7 * DEPTH]);
            s7 = a7.fma(b0, s7);
            FloatVector a8 = broadcast(SPECIES, a[aAt + 8 * DEPTH]);
            s8 = a8.fma(b0, s8);
            FloatVector a9 = broadcast(SPECIES, a[aAt + 9 * DEPTH]);
            s9 = a9.fma(b0, s9);
            FloatVector a10 = broadcast(SPECIES, a[aAt + 10 * DEPTH]);
            s10 = a10.fma(b0, s10);
            FloatVector a11 = broadcast(SPECIES, a[aAt + 11 * DEPTH]);
            s11 = a11.fma(b0, s11);
        }
        s0.intoArray(sums, sumsFrom);
        s1.intoArray(sums, sumsFrom + COLS);
        s2.intoArray(sums, sumsFrom + 2 * COLS);
        s3.intoArray(sums, sumsFrom + 3 * COLS);
        s4.intoArray(sums, sumsFrom + 4 * COLS);
        s5.intoArray(sums, sumsFrom + 5 * COLS);
        s6.intoArray(sums, sumsFrom + 6 * COLS);
        s7.intoArray(sums, sumsFrom + 7 * COLS);
        s8.intoArray(sums, sumsFrom + 8 * COLS);
        s9.intoArray(sums, sumsFrom + 9 * COLS);
        s10.intoArray(sums, sumsFrom + 10 * COLS);
        s11.intoArray(sums, sumsFrom + 11 * COLS);
    }
}
