package dev.weft.gemm.code;

import dev.weft.tensor.DType;
import java.lang.foreign.MemorySegment;

/**
 * The innermost loops of a product: {@link #pack} puts rows of A into the order in which {@link
 * #sum} reads them, and {@link #sum} multiplies them with a panel of B. {@link #sumInPlace}
 * multiplies rows where they are, if there is only one panel. Stateless and thread-safe.
 *
 * <p>If the {@link #type} is fp32, a packed tile holds, for each k, one element of each of its
 * {@link #rows}, and a panel of B one of each of its {@link #cols}, of fp32 or of 16 bits. If it is
 * bf16, both have steps of {@link #BF16_STEP} along k, in pairs, padded with zeros:
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

    /** Whether packed tiles and panels have pairs of k side by side. */
    default boolean pairs() {
        return type() == DType.BF16;
    }

    /**
     * Whether a panel may hold elements of this type of 16 bits, which are widened when they are
     * used.
     */
    default boolean keeps(DType type) {
        return false;
    }

    /** Bytes of a panel whose elements have this type. */
    default long panelBytes(DType type, int depth) {
        return cols() * paddedDepth(pairs(), depth) * type.bytes();
    }

    /** Bytes of a packed tile. */
    default long tileBytes(int depth) {
        return rows() * paddedDepth(pairs(), depth) * type().bytes();
    }

    /** {@code depth} padded as in panels and packed tiles. */
    static long paddedDepth(boolean pairs, long depth) {
        long step = pairs ? BF16_STEP : 1;
        return Math.multiplyExact(Math.ceilDiv(depth, step), step);
    }

    /** The offset of an element in a panel of {@code cols} columns. */
    static long inPanel(DType type, boolean pairs, int cols, long k, long col) {
        if (!pairs) {
            return (k * cols + col) * type.bytes();
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
     * @param panelType the type of elements of panels
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
            DType panelType,
            MemorySegment panels,
            long bFrom,
            int colCount,
            MemorySegment sums,
            long sumsFrom,
            long pitch,
            Arguments arguments);

    /**
     * Widens a panel of a type that is {@link #keeps kept}.
     *
     * @param to where the panel of fp32 begins
     */
    default void widen(
            DType type,
            MemorySegment panels,
            long from,
            int depth,
            MemorySegment to,
            Arguments arguments) {
        throw new UnsupportedOperationException(
                "engine %s keeps no panels of %s".formatted(name(), type.label()));
    }

    /** The least depth of {@link #sumInPlace}. */
    int LEAST_DEPTH_IN_PLACE = 16;

    /** Rows that {@link #sumInPlace} takes at a time for so many columns; 0 if it cannot. */
    default int rowsInPlace(int colCount) {
        return 0;
    }

    /** The most of {@link #rowsInPlace} for any number of columns. */
    default int mostRowsInPlace() {
        return 0;
    }

    /**
     * Sums rows of A where they are with one panel of fp32: the same sums as of packed tiles.
     *
     * @param a off the heap, the first element at byte {@code aFrom}, rows {@code aPitch} bytes
     *     apart
     * @param rowCount rows that are wanted; others up to the next multiple of {@link #rowsInPlace}
     *     are written, too
     * @param depth at least {@link #LEAST_DEPTH_IN_PLACE}
     * @param colCount columns that are wanted; those up to the next step are written, too
     */
    default void sumInPlace(
            boolean resume,
            DType typeA,
            MemorySegment a,
            long aFrom,
            long aPitch,
            int rowCount,
            int depth,
            MemorySegment panels,
            long bFrom,
            int colCount,
            MemorySegment sums,
            long sumsFrom,
            long pitch,
            Arguments arguments) {
        throw new UnsupportedOperationException("engine %s packs A".formatted(name()));
    }
}
