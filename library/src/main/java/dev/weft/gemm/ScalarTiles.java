package dev.weft.gemm;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Tiles of 4 rows x 4 columns in plain Java, which runs on every JDK: 16 chains of {@link
 * Math#fma(float, float, float)} hide the latency of one.
 */
final class ScalarTiles extends JavaTiles {

    private static final ValueLayout.OfFloat FLOAT = RowConverter.FLOAT;
    private static final int COLS = 4;

    ScalarTiles() {
        super("scalar", COLS);
    }

    @Override
    void sumTile(
            MemorySegment a,
            long aFrom,
            MemorySegment b,
            long bFrom,
            int depth,
            MemorySegment sums,
            long row0,
            long pitch) {
        long row1 = row0 + pitch;
        long row2 = row1 + pitch;
        long row3 = row2 + pitch;
        float s00 = sums.get(FLOAT, row0), s01 = sums.get(FLOAT, row0 + 4);
        float s02 = sums.get(FLOAT, row0 + 8), s03 = sums.get(FLOAT, row0 + 12);
        float s10 = sums.get(FLOAT, row1), s11 = sums.get(FLOAT, row1 + 4);
        float s12 = sums.get(FLOAT, row1 + 8), s13 = sums.get(FLOAT, row1 + 12);
        float s20 = sums.get(FLOAT, row2), s21 = sums.get(FLOAT, row2 + 4);
        float s22 = sums.get(FLOAT, row2 + 8), s23 = sums.get(FLOAT, row2 + 12);
        float s30 = sums.get(FLOAT, row3), s31 = sums.get(FLOAT, row3 + 4);
        float s32 = sums.get(FLOAT, row3 + 8), s33 = sums.get(FLOAT, row3 + 12);
        for (long k = 0; k < depth; k++) {
            long aAt = aFrom + k * TILE_COLUMN_BYTES;
            float a0 = a.get(FLOAT, aAt), a1 = a.get(FLOAT, aAt + 4);
            float a2 = a.get(FLOAT, aAt + 8), a3 = a.get(FLOAT, aAt + 12);
            long bAt = bFrom + k * COLS * Float.BYTES;
            float b0 = b.get(FLOAT, bAt), b1 = b.get(FLOAT, bAt + 4);
            float b2 = b.get(FLOAT, bAt + 8), b3 = b.get(FLOAT, bAt + 12);
            s00 = Math.fma(a0, b0, s00);
            s01 = Math.fma(a0, b1, s01);
            s02 = Math.fma(a0, b2, s02);
            s03 = Math.fma(a0, b3, s03);
            s10 = Math.fma(a1, b0, s10);
            s11 = Math.fma(a1, b1, s11);
            s12 = Math.fma(a1, b2, s12);
            s13 = Math.fma(a1, b3, s13);
            s20 = Math.fma(a2, b0, s20);
            s21 = Math.fma(a2, b1, s21);
            s22 = Math.fma(a2, b2, s22);
            s23 = Math.fma(a2, b3, s23);
            s30 = Math.fma(a3, b0, s30);
            s31 = Math.fma(a3, b1, s31);
            s32 = Math.fma(a3, b2, s32);
            s33 = Math.fma(a3, b3, s33);
        }
        put(sums, row0, s00, s01, s02, s03);
        put(sums, row1, s10, s11, s12, s13);
        put(sums, row2, s20, s21, s22, s23);
        put(sums, row3, s30, s31, s32, s33);
    }

    private static void put(MemorySegment sums, long at, float s0, float s1, float s2, float s3) {
        sums.set(FLOAT, at, s0);
        sums.set(FLOAT, at + 4, s1);
        sums.set(FLOAT, at + 8, s2);
        sums.set(FLOAT, at + 12, s3);
    }
}
