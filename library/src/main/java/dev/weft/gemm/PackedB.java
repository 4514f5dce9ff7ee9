package dev.weft.gemm;

import dev.weft.gemm.code.Tiles;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;

/**
 * A matrix B as an engine reads it: fp32 or bf16, cut along K into blocks of {@code blockDepth} and
 * along N into panels of {@code panelCols} columns, so that a kernel walks through memory without a
 * jump. Columns past N are zero, and so are rows past K up to a step of bf16. {@link Tiles}
 * describes the layout of a bf16 panel, which has the bits of B; this is the layout of an fp32
 * panel:
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
 * @param blockDepth a multiple of {@link Tiles#BF16_STEP} if the type is bf16
 * @param type fp32, or bf16 for a B of bf16
 * @param panels at least {@link #bytes(long, long, int, DType)} of memory; zero, or already packed
 */
public record PackedB(
        long k, long n, int panelCols, long blockDepth, DType type, MemorySegment panels) {

    /** A cache line, and the longest vector. */
    public static final long ALIGNMENT_BYTES = 64;

    public PackedB {
        panels = panels.asSlice(0, bytes(k, n, panelCols, type));
    }

    /**
     * Packs the panels of part {@code part} of {@code parts}; touches no other panels.
     *
     * @param b [K, N], or [N, K] if {@code transposed}
     */
    public void fill(Matrix b, boolean transposed, int part, int parts) {
        if (type == DType.BF16 && b.dtype() != DType.BF16) {
            throw new IllegalArgumentException(
                    "B is %s: an engine for bf16 packs bf16 only".formatted(b.describe()));
        }
        if (b.dtype().isScaled()) {
            throw new IllegalArgumentException(
                    "B is %s: expected fp32, fp16 or bf16, with its scales applied"
                            .formatted(b.describe()));
        }
        long panelCount = Math.ceilDiv(n, panelCols);
        long from = panelCount * part / parts * panelCols;
        long to = Math.min(n, panelCount * (part + 1) / parts * panelCols);
        PanelWriter writer = new PanelWriter(b, transposed, this);
        for (long fromK = 0; fromK < k; fromK += blockDepth) {
            long depth = Math.min(blockDepth, k - fromK);
            for (long fromCol = from; fromCol < to; fromCol += panelCols) {
                int cols = (int) Math.min(panelCols, n - fromCol);
                writer.write(fromK, depth, fromCol, cols, panelOffset(fromK, depth, fromCol));
            }
        }
    }

    /** Bytes of memory that this copy of B uses. */
    public long bytes() {
        return panels.byteSize();
    }

    /** Equal for copies with the same layout: copies of equal matrices then have the same bytes. */
    public long layout() {
        return ((long) panelCols << Byte.SIZE | type.ordinal()) << Integer.SIZE ^ blockDepth;
    }

    /** The offset of a panel in the block of {@code depth} rows from {@code fromK} on. */
    long panelOffset(long fromK, long depth, long fromCol) {
        long paddedDepth = Tiles.paddedDepth(type, depth);
        return (fromK * paddedCols(n, panelCols) + fromCol * paddedDepth) * type.bytes();
    }

    /** Refuses a B that another engine has packed. */
    void requireLayout(int cols, long depth, DType elements, String engine) {
        if (panelCols != cols || blockDepth != depth || type != elements) {
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
    static long bytes(long k, long n, int panelCols, DType type) {
        long paddedN = paddedCols(n, panelCols);
        try {
            long elements = Math.multiplyExact(Tiles.paddedDepth(type, k), paddedN);
            return Math.multiplyExact(elements, (long) type.bytes());
        } catch (ArithmeticException e) {
            throw new IllegalArgumentException(
                    "B of %s x %s packed as %s does not fit 64-bit addresses"
                            .formatted(k, paddedN, type.label()),
                    e);
        }
    }
}
