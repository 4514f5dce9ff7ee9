package dev.weft.gemm;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A block of A, packed as a kernel reads it, and the fp32 sums of a block of C, tile after tile.
 * Both are heap arrays of bounded size: the JIT compiler needs much less code to read an array than
 * a segment, and the largest kernel must stay below the size from which on it no longer inlines
 * everything and boxes vectors.
 */
final class VectorScratch implements Scratch {

    private static final long LINE_BYTES = 64;
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

    private final float[] tiles;
    private final float[] staging;
    private final float[] sums;
    private final int sumCols;
    private final VectorConverter converter;
    private final float[] touched = new float[1];

    /**
     * @param maxRows of A at a time, a multiple of the kernel's
     */
    VectorScratch(MicroKernel kernel, int maxRows, int sumCols) {
        int tileRows = kernel.rows();
        this.tiles = new float[Math.multiplyExact(maxRows / tileRows, kernel.packedTile())];
        this.staging = new float[kernel.stages() ? tileRows * MicroKernel.DEPTH : 0];
        this.sums = new float[Math.multiplyExact(maxRows, sumCols)];
        this.sumCols = sumCols;
        int piece = Math.max(MicroKernel.DEPTH, kernel.mostRows() * kernel.cols());
        this.converter = new VectorConverter(piece);
    }

    /** The scratch behind {@code scratch}; refuses another engine's, or one for fewer columns. */
    static VectorScratch of(Scratch scratch, int sumCols) {
        VectorScratch own = Scratch.of(VectorScratch.class, scratch, "vector");
        if (own.sumCols < sumCols) {
            throw new IllegalArgumentException(
                    "scratch for " + own.sumCols + " columns of B, the product needs " + sumCols);
        }
        return own;
    }

    /** Packed tiles of A. */
    float[] tiles() {
        return tiles;
    }

    /** Rows of one tile on their way to {@link #tiles}, for kernels that want that. */
    float[] staging() {
        return staging;
    }

    /** Sums of C, tile after tile. */
    float[] sums() {
        return sums;
    }

    /**
     * Reads one element of every cache line of a panel, so that it comes near at the rate of the
     * far cache; a kernel, which does much between two lines, brings it at less. Measured with B in
     * a third-level cache, kernels alone: 1.03 with 126 rows to a block, 1.01 with 252, 1.00 with
     * 504.
     */
    void touch(MemorySegment panels, long from, long bytes) {
        float sum = 0;
        for (long at = from; at < from + bytes; at += LINE_BYTES) {
            sum += panels.get(FLOAT, at);
        }
        // Kept, or the compiler would see that nobody needs it.
        touched[0] = sum;
    }

    VectorConverter converter() {
        return converter;
    }
}
