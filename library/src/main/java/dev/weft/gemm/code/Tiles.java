package dev.weft.gemm.code;

import dev.weft.tensor.DType;
import java.lang.foreign.MemorySegment;

/**
 * The innermost loops of a product: {@link #pack} puts rows of A into the order in which {@link
 * #sum} reads them, and {@link #sum} multiplies them with a panel of B. Stateless and thread-safe.
 *
 * <p>If the {@link #type} is fp32, a packed tile holds, for each k, one element of each of its
 * {@link #rows}, and a panel of B one of each of its {@link #cols}. If it is bf16, both have steps
 * of {@link #BF16_STEP} along k, padded with zeros:
 *
 * <pre>
 * step of a packed tile: row 0: k = 0 .. 31
 *                        row 1: ...
 * step of a panel:       columns 0 .. 15: k = 0 and 1 of column 0, of column 1, ...
 *                                         k = 2 and 3 of column 0, ...
 *                        columns 16 .. 31: ...
 * </pre>
 *
 * Sums are rows of fp32 anywhere off the heap, for example in C itself.
 */
public interface Tiles {

    /** How many k an instruction for bf16 sums at once; any cut along k is a multiple. */
    int BF16_STEP = 32;

    /** Columns of B that are adjacent in a step of bf16. */
    int BF16_COLS = 16;

    /** The name of the engine that multiplies with them. */
    String name();

    /** Rows of A in a packed tile. */
    int rows();

    /** Columns of B in a panel. */
    int cols();

    /**
     * The type of packed tiles and panels. A and B of other types are widened to fp32; bf16 holds
     * only bf16, and sums as the processor does, not as a chain.
     */
    default DType type() {
        return DType.FP32;
    }

    /** Columns of A, and rows of B, that are best summed in one call. */
    default int depth() {
        return 512;
    }

    /** Bytes of a panel. */
    default long panelBytes(int depth) {
        return cols() * paddedDepth(type(), depth) * type().bytes();
    }

    /** Bytes of a packed tile. */
    default long tileBytes(int depth) {
        return rows() * paddedDepth(type(), depth) * type().bytes();
    }

    /** {@code depth} padded as in panels and packed tiles. */
    static long paddedDepth(DType type, long depth) {
        long step = type == DType.BF16 ? BF16_STEP : 1;
        return Math.multiplyExact(Math.ceilDiv(depth, step), step);
    }

    /** The offset of an element in a panel of {@code cols} columns. */
    static long inPanel(DType type, int cols, long k, long col) {
        if (type == DType.FP32) {
            return (k * cols + col) * Float.BYTES;
        }
        long step = k / BF16_STEP * cols + col / BF16_COLS * BF16_COLS;
        long pair = k % BF16_STEP / 2 * BF16_COLS + col % BF16_COLS;
        return ((step * BF16_STEP / 2 + pair) * 2 + k % 2) * Short.BYTES;
    }

    /** If not all of a tile is wanted, columns are written in multiples of this. */
    int colStep();

    /**
     * Packs tiles one after the other.
     *
     * @param a off the heap; the first tile's first element is at byte {@code from}
     * @param pitch bytes from a row to the next
     * @param count the number of rows; the rest of the last tile repeats the last of them
     * @param depth elements of a row
     * @param to the offset of the first tile in {@code packed}
     * @param arguments of the calling thread
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
            Arguments arguments);

    /**
     * Sums tiles that follow each other: for k = 0 .. depth-1 in this order, one fused multiply-add
     * of each pair, or with bf16 step after step as the processor does.
     *
     * @param resume whether to continue the sums that are there, instead of starting from +0
     * @param aFrom the offset of the first tile in {@code packed}
     * @param tileCount tiles, each a tile's rows further down in {@code sums}
     * @param rowCount rows of a tile that are wanted, all if there are several tiles; others may be
     *     written too
     * @param colCount columns that are wanted; those up to the next step are written too. It may
     *     cover several whole panels that follow each other
     * @param sumsFrom the offset of the first tile's first element in {@code sums}
     * @param pitch bytes from a row of {@code sums} to the next
     * @param arguments of the calling thread
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
            Arguments arguments);
}
