package dev.weft.gemm.code;

import dev.weft.tensor.DType;
import java.lang.foreign.MemorySegment;

/**
 * The innermost loops of a product: {@link #pack} puts rows of A into the order in which {@link
 * #sum} reads them, and that multiplies them with a panel of B. They have no state, and any thread
 * may call them.
 *
 * <p>A packed tile holds, for each k, one fp32 of each of its {@link #rows}; a panel of B one fp32
 * of each of its {@link #cols}. Sums are rows of fp32 anywhere off the heap, C itself for one.
 */
public interface Tiles {

    /** Memory for the arguments of a thread's calls, more than there are registers for. */
    long ARGUMENT_BYTES = 8 * Long.BYTES;

    /** Of the engine that multiplies with them. */
    String name();

    /** Rows of A in a packed tile. */
    int rows();

    /** Columns of B in a panel. */
    int cols();

    /** Of a tile that is not wanted whole, columns are written in multiples of this. */
    int colStep();

    /**
     * Packs one tile.
     *
     * @param a off the heap; the tile's first element is at byte {@code from}
     * @param pitch bytes from a row to the next
     * @param count rows that there are; the rest of the tile repeats the last of them
     * @param depth elements of a row
     * @param to the byte in {@code packed} where the tile begins
     * @param arguments {@link #ARGUMENT_BYTES} of the calling thread
     */
    void pack(
            DType type,
            MemorySegment a,
            long from,
            long pitch,
            int count,
            int depth,
            MemorySegment packed,
            long to,
            MemorySegment arguments);

    /**
     * Sums tiles that lie one after the other: for k = 0 .. depth-1 in this order, one fused
     * multiply-add of each pair.
     *
     * @param resume whether to go on from the sums that are there, instead of from +0
     * @param aFrom the byte in {@code packed} where the first tile begins
     * @param tileCount tiles, each a tile's rows further down in {@code sums}
     * @param rowCount rows of a tile that are wanted; others may be written too
     * @param colCount columns that are wanted; those up to the next step are written too
     * @param sumsFrom the byte in {@code sums} of the first tile's first element
     * @param pitch bytes from a row of {@code sums} to the next
     * @param arguments {@link #ARGUMENT_BYTES} of the calling thread
     */
    void sum(
            boolean resume,
            MemorySegment packed,
            long aFrom,
            int tileCount,
            int rowCount,
            int depth,
            MemorySegment panels,
            long bFrom,
            int colCount,
            MemorySegment sums,
            long sumsFrom,
            long pitch,
            MemorySegment arguments);
}
