package dev.weft.gemm;

import dev.weft.gemm.code.BlockPanels;
import dev.weft.gemm.code.Tiles;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.QuantizedMatrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * A matrix B as an engine reads it, cut along K into blocks of {@code blockDepth} and along N into
 * panels of {@code panelCols} columns, so that a kernel walks through memory without a jump. It has
 * elements of fp32, or the bits of a B of 16 bits. Columns past N are zero, and so are rows past K
 * up to a step of pairs. {@link Tiles} describes the layout of pairs; this is the one without:
 *
 * <pre>
 * block 0: panel 0: k = 0: column 0 .. panelCols-1
 *                   k = 1: ...
 *          panel 1: ...
 * block 1: ...
 * </pre>
 *
 * It is valid as long as the memory it was packed into. Several ranks may share that: then each
 * packs a part, and all read it once every part is complete. Any number of threads may read it.
 *
 * @param blockDepth a multiple of {@link Tiles#BF16_STEP} if there are pairs
 * @param type fp32, or that of a B of fp16 or bf16
 * @param pairs whether two rows of bf16 are side by side
 * @param blocks the layout of a B in blocks, whose type is fp32; null for elements
 * @param panels at least {@link #bytes(long, long, int, DType, boolean)} of memory; zero, or
 *     already packed
 */
public record PackedB(
        long k,
        long n,
        int panelCols,
        long blockDepth,
        DType type,
        boolean pairs,
        BlockPanels blocks,
        MemorySegment panels) {

    /** A cache line, and the longest vector. */
    public static final long ALIGNMENT_BYTES = 64;

    public PackedB {
        panels =
                panels.asSlice(
                        0,
                        blocks == null ? bytes(k, n, panelCols, type, pairs) : blocks.bytes(k, n));
    }

    /** Elements, not blocks. */
    PackedB(
            long k,
            long n,
            int panelCols,
            long blockDepth,
            DType type,
            boolean pairs,
            MemorySegment panels) {
        this(k, n, panelCols, blockDepth, type, pairs, null, panels);
    }

    /**
     * Packs the panels of part {@code part} of {@code parts}; touches no other panels. Blocks are
     * made of elements by {@link QuantizedMatrix#ofB}.
     *
     * @param b [K, N], or [N, K] if {@code transposed}
     */
    public void fill(Matrix b, boolean transposed, int part, int parts) {
        if (type != DType.FP32 && b.dtype() != type) {
            throw new IllegalArgumentException(
                    "B is %s: expected %s, which this packed copy holds"
                            .formatted(b.describe(), type.label()));
        }
        if (b.dtype().isScaled()) {
            throw new IllegalArgumentException(
                    "B is %s: expected fp32, fp16 or bf16, with its scales applied"
                            .formatted(b.describe()));
        }
        long panelCount = Math.ceilDiv(n, panelCols);
        long from = panelCount * part / parts * panelCols;
        long to = Math.min(n, panelCount * (part + 1) / parts * panelCols);
        if (blocks != null) {
            try (Arena arena = Arena.ofConfined()) {
                Matrix own = transposed ? b.rows(from, to - from) : b.block(0, k, from, to - from);
                blocks.write(
                        QuantizedMatrix.ofB(arena, own, transposed, blocks.type()),
                        from,
                        n,
                        panels);
            }
            return;
        }
        PanelWriter writer = new PanelWriter(b, transposed, this);
        for (long fromK = 0; fromK < k; fromK += blockDepth) {
            long depth = Math.min(blockDepth, k - fromK);
            for (long fromCol = from; fromCol < to; fromCol += panelCols) {
                int cols = (int) Math.min(panelCols, n - fromCol);
                writer.write(fromK, depth, fromCol, cols, panelOffset(fromK, depth, fromCol));
            }
        }
    }

    /** Likewise, of blocks of the type of this copy. */
    public void fill(QuantizedMatrix b, int part, int parts) {
        if (blocks == null || b.type() != blocks.type()) {
            throw new IllegalArgumentException(
                    "B is %s, packed as %s: expected the same"
                            .formatted(
                                    b.describe(),
                                    (blocks == null ? type.label() : blocks.type().label())));
        }
        long panelCount = Math.ceilDiv(n, panelCols);
        long from = panelCount * part / parts * panelCols;
        long to = Math.min(n, panelCount * (part + 1) / parts * panelCols);
        blocks.write(b.block(from, to - from, 0, k), from, n, panels);
    }

    /** Bytes of memory that this copy of B uses. */
    public long bytes() {
        return panels.byteSize();
    }

    /** Equal for copies with the same layout: copies of equal matrices then have the same bytes. */
    public long layout() {
        int element = type.ordinal() << 1 | (pairs ? 1 : 0);
        long elements = ((long) panelCols << Byte.SIZE | element) << Integer.SIZE;
        return blocks == null ? elements ^ blockDepth : elements ^ ~(long) blocks.hashCode();
    }

    /** The offset of a panel in the block of {@code depth} rows from {@code fromK} on. */
    long panelOffset(long fromK, long depth, long fromCol) {
        long paddedDepth = Tiles.paddedDepth(pairs, depth);
        return (fromK * paddedCols(n, panelCols) + fromCol * paddedDepth) * type.bytes();
    }

    /** Refuses a B that another engine has packed. */
    void requireBlocks(BlockPanels layout, String engine) {
        if (!layout.equals(blocks)) {
            throw new IllegalArgumentException(
                    "B is packed as %s, engine %s reads %s: pack B with the engine that multiplies"
                            .formatted(blocks == null ? type.label() : blocks, engine, layout));
        }
    }

    /** Likewise, of elements. */
    void requireLayout(int cols, long depth, DType elements, boolean inPairs, String engine) {
        boolean same = blocks == null && panelCols == cols && blockDepth == depth;
        if (!same || type != elements || pairs != inPairs) {
            throw new IllegalArgumentException(
                    """
                    B is packed as %s in panels of %s columns and blocks of %s rows, engine %s \
                    reads %s, %s and %s: pack B with the engine that multiplies"""
                            .formatted(
                                    type.label(),
                                    panelCols,
                                    blockDepth,
                                    engine,
                                    elements.label(),
                                    cols,
                                    depth));
        }
    }

    private static long paddedCols(long n, int panelCols) {
        return Math.ceilDiv(n, panelCols) * panelCols;
    }

    /** Bytes of a packed [k, n]. */
    static long bytes(long k, long n, int panelCols, DType type, boolean pairs) {
        long paddedN = paddedCols(n, panelCols);
        try {
            long elements = Math.multiplyExact(Tiles.paddedDepth(pairs, k), paddedN);
            return Math.multiplyExact(elements, (long) type.bytes());
        } catch (ArithmeticException e) {
            throw new IllegalArgumentException(
                    "B of %s x %s packed as %s does not fit 64-bit addresses"
                            .formatted(k, paddedN, type.label()),
                    e);
        }
    }
}
