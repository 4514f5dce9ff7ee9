package dev.weft.gemm;

import dev.weft.gemm.code.Tiles;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/** Copies rectangles of B into panels, widened to fp32 if those hold fp32. One thread. */
final class PanelWriter {

    private static final ValueLayout.OfFloat FLOAT = RowConverter.FLOAT;
    private static final ValueLayout.OfInt INT = RowConverter.INT;
    private static final ValueLayout.OfShort SHORT = RowConverter.SHORT;

    /** Elements of a row at a time: together with a panel's columns they fit a near cache. */
    private static final int PIECE = 64;

    private final Matrix b;
    private final boolean transposed;
    private final DType type;
    private final boolean pairs;
    private final MemorySegment panels;
    private final int panelCols;
    private final RowConverter converter = new RowConverter();
    private final float[] piece = new float[PIECE];
    private final MemorySegment pieceView = MemorySegment.ofArray(piece);
    private final short[] halves = new short[PIECE];

    /** Two rows of a bf16 panel, and both combined. */
    private final short[] even;

    private final short[] odd;
    private final int[] both;

    PanelWriter(Matrix b, boolean transposed, PackedB packed) {
        this.b = b;
        this.transposed = transposed;
        this.type = packed.type();
        this.panels = packed.panels();
        this.panelCols = packed.panelCols();
        this.pairs = packed.pairs();
        int pairCols = pairs ? panelCols : 0;
        this.even = new short[pairCols];
        this.odd = new short[pairCols];
        this.both = new int[pairCols];
    }

    /** Writes B[fromK ..][fromCol ..] as one panel that starts at byte {@code start}. */
    void write(long fromK, long depth, long fromCol, int cols, long start) {
        if (pairs) {
            if (transposed) {
                turnPairs(fromK, depth, fromCol, cols, start);
            } else {
                for (long i = 0; i < depth; i += 2) {
                    writePairs(fromK + i, i + 1 < depth, fromCol, cols, start + at(i, 0));
                }
            }
            return;
        }
        if (type != DType.FP32) {
            writeHalves(fromK, depth, fromCol, cols, start);
            return;
        }
        if (!transposed) {
            for (long i = 0; i < depth; i++) {
                converter.widen(b, fromK + i, fromCol, cols, panels, start + at(i, 0));
            }
            return;
        }
        for (long i = 0; i < depth; i += PIECE) {
            int length = (int) Math.min(PIECE, depth - i);
            for (long col = 0; col < cols; col++) {
                converter.widen(b, fromCol + col, fromK + i, length, pieceView, 0);
                long to = start + at(i, col);
                for (int j = 0; j < length; j++) {
                    panels.set(FLOAT, to + at(j, 0), piece[j]);
                }
            }
        }
    }

    /** The same for elements of 16 bits, whose bits stay. */
    private void writeHalves(long fromK, long depth, long fromCol, int cols, long start) {
        if (!transposed) {
            for (long i = 0; i < depth; i++) {
                long from = b.offset(fromK + i, fromCol);
                long bytes = (long) cols * Short.BYTES;
                MemorySegment.copy(b.data(), from, panels, start + at(i, 0), bytes);
            }
            return;
        }
        for (long i = 0; i < depth; i += PIECE) {
            int length = (int) Math.min(PIECE, depth - i);
            for (long col = 0; col < cols; col++) {
                long from = b.offset(fromCol + col, fromK + i);
                MemorySegment.copy(b.data(), SHORT, from, halves, 0, length);
                long to = start + at(i, col);
                for (int j = 0; j < length; j++) {
                    panels.set(SHORT, to + at(j, 0), halves[j]);
                }
            }
        }
    }

    /** Writes rows k and, if it exists, k + 1 side by side; {@code to} is column 0's offset. */
    private void writePairs(long k, boolean hasOdd, long fromCol, int cols, long to) {
        MemorySegment.copy(b.data(), SHORT, b.offset(k, fromCol), even, 0, cols);
        if (hasOdd) {
            MemorySegment.copy(b.data(), SHORT, b.offset(k + 1, fromCol), odd, 0, cols);
        } else {
            Arrays.fill(odd, (short) 0);
        }
        for (int col = 0; col < cols; col++) {
            both[col] = odd[col] << Short.SIZE | Short.toUnsignedInt(even[col]);
        }
        for (int col = 0; col < cols; col += Tiles.BF16_COLS) {
            int count = Math.min(Tiles.BF16_COLS, cols - col);
            MemorySegment.copy(both, col, panels, INT, to + at(0, col), count);
        }
    }

    /**
     * Pairs are already adjacent in B; copies a step at a time, while its panel is in the nearest
     * cache.
     */
    private void turnPairs(long fromK, long depth, long fromCol, int cols, long start) {
        for (long step = 0; step < depth; step += Tiles.BF16_STEP) {
            long end = Math.min(depth, step + Tiles.BF16_STEP);
            for (int col = 0; col < cols; col++) {
                long from = b.offset(fromCol + col, fromK);
                for (long i = step; i < end; i += 2) {
                    long at = from + i * Short.BYTES;
                    int pair =
                            i + 1 < depth
                                    ? b.data().get(INT, at)
                                    : Short.toUnsignedInt(b.data().get(SHORT, at));
                    panels.set(INT, start + at(i, col), pair);
                }
            }
        }
    }

    private long at(long row, long col) {
        return Tiles.inPanel(type, pairs, panelCols, row, col);
    }
}
