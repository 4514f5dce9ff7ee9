package dev.weft.gemm;

import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * A matrix B as an engine reads it: fp32, cut along K into blocks of {@code blockDepth} and along N
 * into panels of {@code panelCols} columns, so that a kernel walks through memory without a jump.
 * Columns past N are zero.
 *
 * <pre>
 * block 0: panel 0: k = 0: column 0 .. panelCols-1
 *                   k = 1: ...
 *          panel 1: ...
 * block 1: ...
 * </pre>
 *
 * Lives as long as the arena it was packed into; any number of threads may read it.
 */
public final class PackedB {

    private static final long ALIGNMENT_BYTES = 64;
    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private final long k;
    private final long n;
    private final int panelCols;
    private final long blockDepth;
    private final MemorySegment panels;

    private PackedB(long k, long n, int panelCols, long blockDepth, Arena arena) {
        this.k = k;
        this.n = n;
        this.panelCols = panelCols;
        this.blockDepth = blockDepth;
        this.panels = arena.allocate(bytes(k, paddedCols(n, panelCols)), ALIGNMENT_BYTES);
    }

    static PackedB pack(Matrix b, boolean transposed, int panelCols, long blockDepth, Arena arena) {
        long k = transposed ? b.cols() : b.rows();
        long n = transposed ? b.rows() : b.cols();
        PackedB packed = new PackedB(k, n, panelCols, blockDepth, arena);
        for (long fromK = 0; fromK < k; fromK += blockDepth) {
            long depth = Math.min(blockDepth, k - fromK);
            for (long fromCol = 0; fromCol < n; fromCol += panelCols) {
                packed.fillPanel(b, transposed, fromK, depth, fromCol);
            }
        }
        return packed;
    }

    /** Rows of B. */
    public long k() {
        return k;
    }

    /** Columns of B. */
    public long n() {
        return n;
    }

    /** Bytes of memory that this copy of B takes. */
    public long bytes() {
        return panels.byteSize();
    }

    MemorySegment panels() {
        return panels;
    }

    /**
     * Where the panel of columns {@code fromCol ..} in the block of rows {@code fromK ..} starts.
     *
     * @param depth rows of B in this block
     */
    long panelOffset(long fromK, long depth, long fromCol) {
        return (fromK * paddedCols(n, panelCols) + fromCol * depth) * Float.BYTES;
    }

    /** Refuses a B that another engine has packed. */
    void requireLayout(int wantedPanelCols, long wantedBlockDepth, String engine) {
        if (panelCols != wantedPanelCols || blockDepth != wantedBlockDepth) {
            throw new IllegalArgumentException(
                    "B is packed in panels of "
                            + panelCols
                            + " columns and blocks of "
                            + blockDepth
                            + " rows, engine "
                            + engine
                            + " reads "
                            + wantedPanelCols
                            + " and "
                            + wantedBlockDepth
                            + ": pack B with the engine that multiplies");
        }
    }

    private void fillPanel(Matrix b, boolean transposed, long fromK, long depth, long fromCol) {
        long cols = Math.min(panelCols, n - fromCol);
        long start = panelOffset(fromK, depth, fromCol);
        if (transposed) {
            for (long col = 0; col < cols; col++) {
                for (long i = 0; i < depth; i++) {
                    put(start, i, col, b.get(fromCol + col, fromK + i));
                }
            }
        } else {
            for (long i = 0; i < depth; i++) {
                for (long col = 0; col < cols; col++) {
                    put(start, i, col, b.get(fromK + i, fromCol + col));
                }
            }
        }
    }

    private void put(long start, long row, long col, float value) {
        panels.set(FLOAT, start + (row * panelCols + col) * Float.BYTES, value);
    }

    private static long paddedCols(long n, int panelCols) {
        return Math.ceilDiv(n, panelCols) * panelCols;
    }

    private static long bytes(long k, long paddedN) {
        try {
            return Math.multiplyExact(Math.multiplyExact(k, paddedN), (long) Float.BYTES);
        } catch (ArithmeticException e) {
            throw new IllegalArgumentException(
                    "B of " + k + " x " + paddedN + " packed as fp32 does not fit 64-bit addresses",
                    e);
        }
    }
}
