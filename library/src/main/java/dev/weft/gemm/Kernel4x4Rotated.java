package dev.weft.gemm;

import static java.nio.ByteOrder.LITTLE_ENDIAN;
import static jdk.incubator.vector.FloatVector.fromArray;
import static jdk.incubator.vector.FloatVector.fromMemorySegment;

import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorSpecies;

/**
 * Tiles of 4 rows x 4 vectors of 128 bits, for NEON: 16 sums, 4 vectors of A and 4 of B fit its 32
 * registers. Broadcasting an element of A would cost an instruction beside its load; instead a
 * vector of A holds one element of each row, and each of its four rotations is multiplied. Packed A
 * holds every column of the tile twice, {@code a0 a1 a2 a3 a0 a1 a2 a3}, so that a rotation is one
 * load that starts some floats later.
 *
 * <p>During summation, vector j of rotation r has in lane l the sum of row {@code (l + r) % 4},
 * column {@code 4 j + l}: each column of the tile is in its place, but turned by l rows. {@link
 * #finish} turns it back.
 *
 * <p>The loop takes two columns of A at a time because C2 does not unroll one of this size by
 * itself: 1.75 instructions for each multiply-add instead of 2. It calls the Vector API directly,
 * not through a method that would shorten it: past some number of nodes C2 inlines only what is
 * annotated so, and a load that is not inlined is boxed. Bounds checks stay: C2 moves them out of
 * the loop, while without them it adds up every address anew.
 */
final class Kernel4x4Rotated extends MicroKernel {

    private static final VectorSpecies<Float> SPECIES = FloatVector.SPECIES_128;
    private static final int LANES = 4;
    private static final int ROWS = 4;
    private static final int COLS = 4 * LANES;
    private static final int PACKED_STEP = 2 * ROWS;
    private static final long VECTOR_BYTES = (long) LANES * Float.BYTES;
    private static final long PANEL_ROW_BYTES = 4 * VECTOR_BYTES;

    // Arrays, because NEON has no instruction that makes a mask from bits: it would be boxed.
    private static final boolean[] ODD_LANES = {false, true, false, true};
    private static final boolean[] UPPER_LANES = {false, false, true, true};

    Kernel4x4Rotated() {
        super(ROWS, COLS, SPECIES);
    }

    @Override
    int packedTile() {
        return PACKED_STEP * DEPTH;
    }

    @Override
    boolean stages() {
        return true;
    }

    /**
     * Gathers a column from four loads, each of which starts so far before the column that the
     * row's element lies in the row's lane. None leaves the {@code 4 * DEPTH} staged floats.
     */
    @Override
    void packTile(float[] staged, int depth, float[] packed, int at) {
        VectorMask<Float> odd = VectorMask.fromArray(SPECIES, ODD_LANES, 0);
        VectorMask<Float> upper = VectorMask.fromArray(SPECIES, UPPER_LANES, 0);
        for (int k = 0; k < depth; k++) {
            FloatVector row0 = fromArray(SPECIES, staged, k);
            FloatVector row1 = fromArray(SPECIES, staged, k + DEPTH - 1);
            FloatVector row2 = fromArray(SPECIES, staged, k + 2 * DEPTH - 2);
            FloatVector row3 = fromArray(SPECIES, staged, k + 3 * DEPTH - 3);
            FloatVector column = row0.blend(row1, odd).blend(row2.blend(row3, odd), upper);
            column.intoArray(packed, at + k * PACKED_STEP);
            column.intoArray(packed, at + k * PACKED_STEP + ROWS);
        }
    }

    @Override
    void accumulate(
            float[] a, int at, MemorySegment b, long bFrom, int depth, float[] sums, int sumsFrom) {
        FloatVector s00 = fromArray(SPECIES, sums, sumsFrom);
        FloatVector s01 = fromArray(SPECIES, sums, sumsFrom + LANES);
        FloatVector s02 = fromArray(SPECIES, sums, sumsFrom + 2 * LANES);
        FloatVector s03 = fromArray(SPECIES, sums, sumsFrom + 3 * LANES);
        FloatVector s10 = fromArray(SPECIES, sums, sumsFrom + 4 * LANES);
        FloatVector s11 = fromArray(SPECIES, sums, sumsFrom + 5 * LANES);
        FloatVector s12 = fromArray(SPECIES, sums, sumsFrom + 6 * LANES);
        FloatVector s13 = fromArray(SPECIES, sums, sumsFrom + 7 * LANES);
        FloatVector s20 = fromArray(SPECIES, sums, sumsFrom + 8 * LANES);
        FloatVector s21 = fromArray(SPECIES, sums, sumsFrom + 9 * LANES);
        FloatVector s22 = fromArray(SPECIES, sums, sumsFrom + 10 * LANES);
        FloatVector s23 = fromArray(SPECIES, sums, sumsFrom + 11 * LANES);
        FloatVector s30 = fromArray(SPECIES, sums, sumsFrom + 12 * LANES);
        FloatVector s31 = fromArray(SPECIES, sums, sumsFrom + 13 * LANES);
        FloatVector s32 = fromArray(SPECIES, sums, sumsFrom + 14 * LANES);
        FloatVector s33 = fromArray(SPECIES, sums, sumsFrom + 15 * LANES);
        for (int k = 0; k < depth - 1; k += 2) {
            int aAt = at + k * PACKED_STEP;
            long bAt = bFrom + k * PANEL_ROW_BYTES;
            FloatVector b0 = fromMemorySegment(SPECIES, b, bAt, LITTLE_ENDIAN);
            FloatVector b1 = fromMemorySegment(SPECIES, b, bAt + VECTOR_BYTES, LITTLE_ENDIAN);
            FloatVector b2 = fromMemorySegment(SPECIES, b, bAt + 2 * VECTOR_BYTES, LITTLE_ENDIAN);
            FloatVector b3 = fromMemorySegment(SPECIES, b, bAt + 3 * VECTOR_BYTES, LITTLE_ENDIAN);
            FloatVector a0 = fromArray(SPECIES, a, aAt);
            s00 = a0.fma(b0, s00);
            s01 = a0.fma(b1, s01);
            s02 = a0.fma(b2, s02);
            s03 = a0.fma(b3, s03);
            FloatVector a1 = fromArray(SPECIES, a, aAt + 1);
            s10 = a1.fma(b0, s10);
            s11 = a1.fma(b1, s11);
            s12 = a1.fma(b2, s12);
            s13 = a1.fma(b3, s13);
            FloatVector a2 = fromArray(SPECIES, a, aAt + 2);
            s20 = a2.fma(b0, s20);
            s21 = a2.fma(b1, s21);
            s22 = a2.fma(b2, s22);
            s23 = a2.fma(b3, s23);
            FloatVector a3 = fromArray(SPECIES, a, aAt + 3);
            s30 = a3.fma(b0, s30);
            s31 = a3.fma(b1, s31);
            s32 = a3.fma(b2, s32);
            s33 = a3.fma(b3, s33);
            FloatVector b4 = fromMemorySegment(SPECIES, b, bAt + 4 * VECTOR_BYTES, LITTLE_ENDIAN);
            FloatVector b5 = fromMemorySegment(SPECIES, b, bAt + 5 * VECTOR_BYTES, LITTLE_ENDIAN);
            FloatVector b6 = fromMemorySegment(SPECIES, b, bAt + 6 * VECTOR_BYTES, LITTLE_ENDIAN);
            FloatVector b7 = fromMemorySegment(SPECIES, b, bAt + 7 * VECTOR_BYTES, LITTLE_ENDIAN);
            FloatVector a4 = fromArray(SPECIES, a, aAt + PACKED_STEP);
            s00 = a4.fma(b4, s00);
            s01 = a4.fma(b5, s01);
            s02 = a4.fma(b6, s02);
            s03 = a4.fma(b7, s03);
            FloatVector a5 = fromArray(SPECIES, a, aAt + PACKED_STEP + 1);
            s10 = a5.fma(b4, s10);
            s11 = a5.fma(b5, s11);
            s12 = a5.fma(b6, s12);
            s13 = a5.fma(b7, s13);
            FloatVector a6 = fromArray(SPECIES, a, aAt + PACKED_STEP + 2);
            s20 = a6.fma(b4, s20);
            s21 = a6.fma(b5, s21);
            s22 = a6.fma(b6, s22);
            s23 = a6.fma(b7, s23);
            FloatVector a7 = fromArray(SPECIES, a, aAt + PACKED_STEP + 3);
            s30 = a7.fma(b4, s30);
            s31 = a7.fma(b5, s31);
            s32 = a7.fma(b6, s32);
            s33 = a7.fma(b7, s33);
        }
        s00.intoArray(sums, sumsFrom);
        s01.intoArray(sums, sumsFrom + LANES);
        s02.intoArray(sums, sumsFrom + 2 * LANES);
        s03.intoArray(sums, sumsFrom + 3 * LANES);
        s10.intoArray(sums, sumsFrom + 4 * LANES);
        s11.intoArray(sums, sumsFrom + 5 * LANES);
        s12.intoArray(sums, sumsFrom + 6 * LANES);
        s13.intoArray(sums, sumsFrom + 7 * LANES);
        s20.intoArray(sums, sumsFrom + 8 * LANES);
        s21.intoArray(sums, sumsFrom + 9 * LANES);
        s22.intoArray(sums, sumsFrom + 10 * LANES);
        s23.intoArray(sums, sumsFrom + 11 * LANES);
        s30.intoArray(sums, sumsFrom + 12 * LANES);
        s31.intoArray(sums, sumsFrom + 13 * LANES);
        s32.intoArray(sums, sumsFrom + 14 * LANES);
        s33.intoArray(sums, sumsFrom + 15 * LANES);
        if (depth % 2 != 0) {
            int last = depth - 1;
            sumOne(a, at + last * PACKED_STEP, b, bFrom + last * PANEL_ROW_BYTES, sums, sumsFrom);
        }
    }

    /** Turns each column back by as many rows as its lane says: odd ones by 1, upper ones by 2. */
    @Override
    void finish(float[] sums, int at) {
        VectorMask<Float> odd = VectorMask.fromArray(SPECIES, ODD_LANES, 0);
        VectorMask<Float> upper = VectorMask.fromArray(SPECIES, UPPER_LANES, 0);
        for (int col = at; col < at + COLS; col += LANES) {
            FloatVector s0 = fromArray(SPECIES, sums, col);
            FloatVector s1 = fromArray(SPECIES, sums, col + COLS);
            FloatVector s2 = fromArray(SPECIES, sums, col + 2 * COLS);
            FloatVector s3 = fromArray(SPECIES, sums, col + 3 * COLS);
            FloatVector t0 = s0.blend(s3, odd);
            FloatVector t1 = s1.blend(s0, odd);
            FloatVector t2 = s2.blend(s1, odd);
            FloatVector t3 = s3.blend(s2, odd);
            t0.blend(t2, upper).intoArray(sums, col);
            t1.blend(t3, upper).intoArray(sums, col + COLS);
            t2.blend(t0, upper).intoArray(sums, col + 2 * COLS);
            t3.blend(t1, upper).intoArray(sums, col + 3 * COLS);
        }
    }

    /** One column of A, with the sums in memory. */
    private static void sumOne(
            float[] a, int aAt, MemorySegment b, long bAt, float[] sums, int sumsFrom) {
        for (int rotation = 0; rotation < ROWS; rotation++) {
            FloatVector column = fromArray(SPECIES, a, aAt + rotation);
            for (int col = 0; col < COLS; col += LANES) {
                int at = sumsFrom + rotation * COLS + col;
                FloatVector row = fromMemorySegment(SPECIES, b, bAt + 4L * col, LITTLE_ENDIAN);
                column.fma(row, fromArray(SPECIES, sums, at)).intoArray(sums, at);
            }
        }
    }
}
