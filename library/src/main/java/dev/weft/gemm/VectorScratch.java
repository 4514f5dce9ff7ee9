package dev.weft.gemm;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A block of A, packed as a kernel reads it, and the fp32 sums of a block of C, tile after tile.
 * Both are heap arrays of bounded size: the JIT compiler needs much less code to read an array than
 * a segment, and the largest kernel must stay below the size from which on it no longer inlines
 * everything and boxes vectors.
 *
 * @param staging rows of one tile on their way to {@code tiles}, for kernels that want that
 * @param touched keeps what {@link #touch} has read
 */
record VectorScratch(
        float[] tiles,
        float[] staging,
        float[] sums,
        int sumCols,
        VectorConverter converter,
        float[] touched)
        implements Scratch {

    private static final long LINE_BYTES = 64;
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

    /** {@code maxRows} of A at a time are a multiple of the kernel's. */
    static VectorScratch allocate(MicroKernel kernel, int maxRows, int sumCols) {
        int tileRows = kernel.rows();
        int piece = Math.max(MicroKernel.DEPTH, kernel.mostRows() * kernel.cols());
        return new VectorScratch(
                new float[Math.multiplyExact(maxRows / tileRows, kernel.packedTile())],
                new float[kernel.stages() ? tileRows * MicroKernel.DEPTH : 0],
                new float[Math.multiplyExact(maxRows, sumCols)],
                sumCols,
                new VectorConverter(piece),
                new float[1]);
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
}
