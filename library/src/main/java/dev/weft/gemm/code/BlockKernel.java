package dev.weft.gemm.code;

import dev.weft.tensor.BlockType;
import java.lang.foreign.MemorySegment;

/**
 * The innermost loop of a product with a B in blocks. Its bits are the same on every processor: for
 * each element of C, step after step of {@link BlockPanels#STEP} k,
 *
 * <pre>
 * dot = the sum of a's numbers x b's numbers, exact
 * Q8_0, Q4_0: sum = fma(scale of b x dot, scale of a, sum)
 * Q4_K:       sum = fma(fma(s, dot, m x -(the sum of a's numbers)), scale of a, sum)
 *             where s = scale x the step's scale, m = offset x the step's offset, both exact
 * </pre>
 *
 * in fp32, where every product and every fma is rounded once. Stateless and thread-safe.
 */
public interface BlockKernel {

    /**
     * What it is written for: {@code amx}, {@code avx512}, {@code avx512bw}, {@code avxvnni},
     * {@code avx2}, {@code neon} or {@code scalar}.
     */
    String name();

    /** The most rows of a call. */
    int rows();

    /**
     * From so many rows of a call on, the 32 numbers of each lie side by side in a step of A, as
     * {@link BlockPanels} says.
     */
    default int wholeRowsFrom() {
        return Integer.MAX_VALUE;
    }

    /** Columns of a panel. */
    int cols();

    /** See {@link BlockPanels}. */
    boolean isUnsigned();

    default BlockPanels panels(BlockType type) {
        return new BlockPanels(type, cols(), isUnsigned());
    }

    /**
     * Sums rows with panels that follow each other.
     *
     * @param resume whether to continue the sums that are there, instead of starting from +0
     * @param k at least one step
     * @param a packed rows, off the heap, from byte {@code aFrom} on
     * @param rows 1 to {@link #rows}
     * @param panels aligned to 64 bytes
     * @param bFrom the offset of the first panel, a multiple of 64
     * @param sums rows of fp32 off the heap, from {@code sumsFrom} on, {@code pitch} bytes apart;
     *     whole panels are written
     * @param arguments of the calling thread
     */
    void sum(
            BlockType type,
            boolean resume,
            long k,
            MemorySegment a,
            long aFrom,
            int rows,
            MemorySegment panels,
            long bFrom,
            int panelCount,
            MemorySegment sums,
            long sumsFrom,
            long pitch,
            Arguments arguments);
}
