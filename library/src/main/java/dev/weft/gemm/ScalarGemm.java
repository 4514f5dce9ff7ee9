package dev.weft.gemm;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The reference engine: plain Java that runs on every JDK and defines the bits of Weft's portable
 * engines. Each element is one chain of {@link Math#fma(float, float, float)} over k = 0 .. K-1
 * from +0, or from what C holds, rounded once. Stateless and thread-safe.
 */
final class ScalarGemm implements Gemm {

    private static final ValueLayout.OfFloat FLOAT = RowConverter.FLOAT;

    /** Four rows and four columns: 16 chains hide the latency of a multiply-add. */
    private static final int ROWS = 4;

    private static final int COLS = 4;

    @Override
    public String name() {
        return "scalar";
    }

    @Override
    public int rowQuantum() {
        return ROWS;
    }

    @Override
    public int colQuantum() {
        return COLS;
    }

    @Override
    public long blockRows() {
        return 8 * ROWS;
    }

    @Override
    public long packedBytes(long k, long n) {
        return PackedB.bytes(k, n, COLS, DType.FP32);
    }

    @Override
    public PackedB packed(long k, long n, MemorySegment memory) {
        return new PackedB(k, n, COLS, Math.max(1, k), DType.FP32, memory);
    }

    @Override
    public Scratch scratch(long k, long n, Arena arena) {
        return ScalarScratch.allocate(k, ROWS, COLS, arena);
    }

    @Override
    public void multiply(
            Matrix a,
            long aRow,
            long rows,
            PackedB b,
            long firstCol,
            long cols,
            boolean resume,
            Matrix c,
            long cRow,
            Scratch scratch) {
        Gemm.check(a, aRow, rows, b, firstCol, cols, COLS, resume, c, cRow);
        b.requireLayout(COLS, Math.max(1, b.k()), DType.FP32, name());
        ScalarScratch own = ScalarScratch.of(scratch, b.k());
        for (long row = 0; row < rows; row += ROWS) {
            long height = Math.min(ROWS, rows - row);
            for (long i = 0; i < height; i++) {
                widenRow(a, aRow + row + i, own.rows(), i * b.k() * Float.BYTES);
            }
            for (long col = firstCol; col < firstCol + cols; col += COLS) {
                if (resume) {
                    loadTile(own.sums(), c, cRow + row, height, col);
                } else {
                    own.sums().fill((byte) 0);
                }
                sumTile(own, b, b.panelOffset(0, b.k(), col));
                storeTile(own.sums(), c, cRow + row, height, col);
            }
        }
    }

    private static void widenRow(Matrix a, long row, MemorySegment target, long offset) {
        for (long k = 0; k < a.cols(); k++) {
            target.set(FLOAT, offset + k * Float.BYTES, a.get(row, k));
        }
    }

    /**
     * Continues the sums that are there. Rows past the last one of A hold an earlier product's
     * values; their sums are not used.
     */
    private static void sumTile(ScalarScratch scratch, PackedB b, long panel) {
        MemorySegment rows = scratch.rows();
        MemorySegment panels = b.panels();
        long pitch = b.k() * Float.BYTES;
        MemorySegment sums = scratch.sums();
        float s00 = sums.get(FLOAT, 0), s01 = sums.get(FLOAT, 4);
        float s02 = sums.get(FLOAT, 8), s03 = sums.get(FLOAT, 12);
        float s10 = sums.get(FLOAT, 16), s11 = sums.get(FLOAT, 20);
        float s12 = sums.get(FLOAT, 24), s13 = sums.get(FLOAT, 28);
        float s20 = sums.get(FLOAT, 32), s21 = sums.get(FLOAT, 36);
        float s22 = sums.get(FLOAT, 40), s23 = sums.get(FLOAT, 44);
        float s30 = sums.get(FLOAT, 48), s31 = sums.get(FLOAT, 52);
        float s32 = sums.get(FLOAT, 56), s33 = sums.get(FLOAT, 60);
        for (long at = 0; at < pitch; at += Float.BYTES) {
            float a0 = rows.get(FLOAT, at);
            float a1 = rows.get(FLOAT, at + pitch);
            float a2 = rows.get(FLOAT, at + 2 * pitch);
            float a3 = rows.get(FLOAT, at + 3 * pitch);
            long bAt = panel + at * COLS;
            float b0 = panels.get(FLOAT, bAt);
            float b1 = panels.get(FLOAT, bAt + 4);
            float b2 = panels.get(FLOAT, bAt + 8);
            float b3 = panels.get(FLOAT, bAt + 12);
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
        putRow(sums, 0, s00, s01, s02, s03);
        putRow(sums, 1, s10, s11, s12, s13);
        putRow(sums, 2, s20, s21, s22, s23);
        putRow(sums, 3, s30, s31, s32, s33);
    }

    private static void putRow(
            MemorySegment sums, long row, float s0, float s1, float s2, float s3) {
        long at = row * COLS * Float.BYTES;
        sums.set(FLOAT, at, s0);
        sums.set(FLOAT, at + 4, s1);
        sums.set(FLOAT, at + 8, s2);
        sums.set(FLOAT, at + 12, s3);
    }

    private static void loadTile(MemorySegment sums, Matrix c, long cRow, long height, long col) {
        long width = Math.min(COLS, c.cols() - col);
        for (long i = 0; i < height; i++) {
            for (long j = 0; j < width; j++) {
                sums.set(FLOAT, (i * COLS + j) * Float.BYTES, c.get(cRow + i, col + j));
            }
        }
    }

    private static void storeTile(MemorySegment sums, Matrix c, long cRow, long height, long col) {
        long width = Math.min(COLS, c.cols() - col);
        for (long i = 0; i < height; i++) {
            for (long j = 0; j < width; j++) {
                c.set(cRow + i, col + j, sums.get(FLOAT, (i * COLS + j) * Float.BYTES));
            }
        }
    }
}
