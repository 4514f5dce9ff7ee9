package dev.weft.gemm;

import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Copies rectangles of B into panels, converted to fp32. For one thread. */
final class PanelWriter {

    private static final ValueLayout.OfFloat FLOAT = RowConverter.FLOAT;

    /** Elements of a row at a time: with a panel's columns they fit a near cache. */
    private static final int PIECE = 64;

    private final Matrix b;
    private final boolean transposed;
    private final MemorySegment panels;
    private final long panelCols;
    private final RowConverter converter = new RowConverter();
    private final float[] piece = new float[PIECE];
    private final MemorySegment pieceView = MemorySegment.ofArray(piece);

    PanelWriter(Matrix b, boolean transposed, MemorySegment panels, long panelCols) {
        this.b = b;
        this.transposed = transposed;
        this.panels = panels;
        this.panelCols = panelCols;
    }

    /** Writes B[fromK ..][fromCol ..] as one panel that starts at byte {@code start}. */
    void write(long fromK, long depth, long fromCol, long cols, long start) {
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

    private long at(long row, long col) {
        return (row * panelCols + col) * Float.BYTES;
    }
}
