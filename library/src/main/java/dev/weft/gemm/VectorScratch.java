package dev.weft.gemm;

import java.lang.foreign.MemorySegment;

/**
 * A block of A as fp32 and the fp32 sums of a block of C. Both are heap arrays of bounded size: the
 * JIT compiler needs much less code to read an array than a segment, and the largest kernel must
 * stay below the size from which on it no longer inlines everything and boxes vectors.
 */
final class VectorScratch implements Scratch {

    private final float[] rows;
    private final float[] sums;
    private final int sumCols;
    private final MemorySegment rowsView;
    private final MemorySegment sumsView;
    private final RowConverter converter = new RowConverter();

    VectorScratch(int maxRows, int depth, int sumCols) {
        this.rows = new float[Math.multiplyExact(maxRows, depth)];
        this.sums = new float[Math.multiplyExact(maxRows, sumCols)];
        this.sumCols = sumCols;
        this.rowsView = MemorySegment.ofArray(rows);
        this.sumsView = MemorySegment.ofArray(sums);
    }

    /** The scratch behind {@code scratch}; refuses another engine's, or one for fewer columns. */
    static VectorScratch of(Scratch scratch, int sumCols) {
        if (!(scratch instanceof VectorScratch own)) {
            throw new IllegalArgumentException(
                    "scratch of another engine: ask engine vector for scratch");
        }
        if (own.sumCols < sumCols) {
            throw new IllegalArgumentException(
                    "scratch for " + own.sumCols + " columns of B, the product needs " + sumCols);
        }
        return own;
    }

    /** Rows of A, {@link MicroKernel#DEPTH} apart. */
    float[] rows() {
        return rows;
    }

    /** Sums of C, {@link #sumCols} to a row. */
    float[] sums() {
        return sums;
    }

    int sumCols() {
        return sumCols;
    }

    /** {@link #rows} as a segment. */
    MemorySegment rowsView() {
        return rowsView;
    }

    /** {@link #sums} as a segment. */
    MemorySegment sumsView() {
        return sumsView;
    }

    RowConverter converter() {
        return converter;
    }
}
