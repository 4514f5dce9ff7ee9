package dev.weft.gemm;

import static java.nio.ByteOrder.LITTLE_ENDIAN;
import static jdk.incubator.vector.FloatVector.broadcast;
import static jdk.incubator.vector.FloatVector.fromArray;
import static jdk.incubator.vector.FloatVector.fromMemorySegment;

import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * For a last panel of {@link Kernel6x4} that is up to two vectors wide: twice the rows, so that
 * there are 24 sums again. It reads the same tiles and panels, two tiles of rows at a time.
 */
final class Kernel12x2 extends MicroKernel {

    private static final VectorSpecies<Float> SPECIES = FloatVector.SPECIES_512;
    private static final int LANES = SPECIES.length();
    private static final int COLS = Kernel6x4.COLS;
    private static final long VECTOR_BYTES = (long) LANES * Float.BYTES;
    private static final long PANEL_ROW_BYTES = (long) COLS * Float.BYTES;

    Kernel12x2() {
        super(12, Kernel6x4.COLS, SPECIES);
    }

    @Override
    void accumulate(
            float[] a, int at, MemorySegment b, long bFrom, int depth, float[] sums, int sumsFrom) {
        FloatVector s0a = fromArray(SPECIES, sums, sumsFrom);
        FloatVector s0b = fromArray(SPECIES, sums, sumsFrom + LANES);
        FloatVector s1a = fromArray(SPECIES, sums, sumsFrom + COLS);
        FloatVector s1b = fromArray(SPECIES, sums, sumsFrom + COLS + LANES);
        FloatVector s2a = fromArray(SPECIES, sums, sumsFrom + 2 * COLS);
        FloatVector s2b = fromArray(SPECIES, sums, sumsFrom + 2 * COLS + LANES);
        FloatVector s3a = fromArray(SPECIES, sums, sumsFrom + 3 * COLS);
        FloatVector s3b = fromArray(SPECIES, sums, sumsFrom + 3 * COLS + LANES);
        FloatVector s4a = fromArray(SPECIES, sums, sumsFrom + 4 * COLS);
        FloatVector s4b = fromArray(SPECIES, sums, sumsFrom + 4 * COLS + LANES);
        FloatVector s5a = fromArray(SPECIES, sums, sumsFrom + 5 * COLS);
        FloatVector s5b = fromArray(SPECIES, sums, sumsFrom + 5 * COLS + LANES);
        FloatVector s6a = fromArray(SPECIES, sums, sumsFrom + 6 * COLS);
        FloatVector s6b = fromArray(SPECIES, sums, sumsFrom + 6 * COLS + LANES);
        FloatVector s7a = fromArray(SPECIES, sums, sumsFrom + 7 * COLS);
        FloatVector s7b = fromArray(SPECIES, sums, sumsFrom + 7 * COLS + LANES);
        FloatVector s8a = fromArray(SPECIES, sums, sumsFrom + 8 * COLS);
        FloatVector s8b = fromArray(SPECIES, sums, sumsFrom + 8 * COLS + LANES);
        FloatVector s9a = fromArray(SPECIES, sums, sumsFrom + 9 * COLS);
        FloatVector s9b = fromArray(SPECIES, sums, sumsFrom + 9 * COLS + LANES);
        FloatVector s10a = fromArray(SPECIES, sums, sumsFrom + 10 * COLS);
        FloatVector s10b = fromArray(SPECIES, sums, sumsFrom + 10 * COLS + LANES);
        FloatVector s11a = fromArray(SPECIES, sums, sumsFrom + 11 * COLS);
        FloatVector s11b = fromArray(SPECIES, sums, sumsFrom + 11 * COLS + LANES);
        for (int k = 0; k < depth; k++) {
            int aAt = at + k;
            long bAt = bFrom + k * PANEL_ROW_BYTES;
            FloatVector b0 = fromMemorySegment(SPECIES, b, bAt, LITTLE_ENDIAN);
            FloatVector b1 = fromMemorySegment(SPECIES, b, bAt + VECTOR_BYTES, LITTLE_ENDIAN);
            FloatVector a0 = broadcast(SPECIES, a[aAt]);
            s0a = a0.fma(b0, s0a);
            s0b = a0.fma(b1, s0b);
            FloatVector a1 = broadcast(SPECIES, a[aAt + DEPTH]);
            s1a = a1.fma(b0, s1a);
            s1b = a1.fma(b1, s1b);
            FloatVector a2 = broadcast(SPECIES, a[aAt + 2 * DEPTH]);
            s2a = a2.fma(b0, s2a);
            s2b = a2.fma(b1, s2b);
            FloatVector a3 = broadcast(SPECIES, a[aAt + 3 * DEPTH]);
            s3a = a3.fma(b0, s3a);
            s3b = a3.fma(b1, s3b);
            FloatVector a4 = broadcast(SPECIES, a[aAt + 4 * DEPTH]);
            s4a = a4.fma(b0, s4a);
            s4b = a4.fma(b1, s4b);
            FloatVector a5 = broadcast(SPECIES, a[aAt + 5 * DEPTH]);
            s5a = a5.fma(b0, s5a);
            s5b = a5.fma(b1, s5b);
            FloatVector a6 = broadcast(SPECIES, a[aAt + 6 * DEPTH]);
            s6a = a6.fma(b0, s6a);
            s6b = a6.fma(b1, s6b);
            FloatVector a7 = broadcast(SPECIES, a[aAt + 7 * DEPTH]);
            s7a = a7.fma(b0, s7a);
            s7b = a7.fma(b1, s7b);
            FloatVector a8 = broadcast(SPECIES, a[aAt + 8 * DEPTH]);
            s8a = a8.fma(b0, s8a);
            s8b = a8.fma(b1, s8b);
            FloatVector a9 = broadcast(SPECIES, a[aAt + 9 * DEPTH]);
            s9a = a9.fma(b0, s9a);
            s9b = a9.fma(b1, s9b);
            FloatVector a10 = broadcast(SPECIES, a[aAt + 10 * DEPTH]);
            s10a = a10.fma(b0, s10a);
            s10b = a10.fma(b1, s10b);
            FloatVector a11 = broadcast(SPECIES, a[aAt + 11 * DEPTH]);
            s11a = a11.fma(b0, s11a);
            s11b = a11.fma(b1, s11b);
        }
        s0a.intoArray(sums, sumsFrom);
        s0b.intoArray(sums, sumsFrom + LANES);
        s1a.intoArray(sums, sumsFrom + COLS);
        s1b.intoArray(sums, sumsFrom + COLS + LANES);
        s2a.intoArray(sums, sumsFrom + 2 * COLS);
        s2b.intoArray(sums, sumsFrom + 2 * COLS + LANES);
        s3a.intoArray(sums, sumsFrom + 3 * COLS);
        s3b.intoArray(sums, sumsFrom + 3 * COLS + LANES);
        s4a.intoArray(sums, sumsFrom + 4 * COLS);
        s4b.intoArray(sums, sumsFrom + 4 * COLS + LANES);
        s5a.intoArray(sums, sumsFrom + 5 * COLS);
        s5b.intoArray(sums, sumsFrom + 5 * COLS + LANES);
        s6a.intoArray(sums, sumsFrom + 6 * COLS);
        s6b.intoArray(sums, sumsFrom + 6 * COLS + LANES);
        s7a.intoArray(sums, sumsFrom + 7 * COLS);
        s7b.intoArray(sums, sumsFrom + 7 * COLS + LANES);
        s8a.intoArray(sums, sumsFrom + 8 * COLS);
        s8b.intoArray(sums, sumsFrom + 8 * COLS + LANES);
        s9a.intoArray(sums, sumsFrom + 9 * COLS);
        s9b.intoArray(sums, sumsFrom + 9 * COLS + LANES);
        s10a.intoArray(sums, sumsFrom + 10 * COLS);
        s10b.intoArray(sums, sumsFrom + 10 * COLS + LANES);
        s11a.intoArray(sums, sumsFrom + 11 * COLS);
        s11b.intoArray(sums, sumsFrom + 11 * COLS + LANES);
    }
}
