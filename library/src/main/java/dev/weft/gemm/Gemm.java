package dev.weft.gemm;

import dev.weft.ffi.LargePages;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * An engine that multiplies rows of A with a packed B. Engines hold no state: any thread may call
 * them, each with its own {@link Scratch}.
 */
public interface Gemm {

    /**
     * {@code neon}, {@code avx2}, {@code avx512} or {@code amx} for machine code, {@code vector}
     * with its width in bits, {@code scalar}, or {@code openblas}; with the type in front for a B
     * in blocks, as in {@code q4_k-avx2}.
     */
    String name();

    /** Rows are computed in multiples of this without waste. */
    int rowQuantum();

    /** Columns are computed in multiples of this without waste; ranges of columns begin at them. */
    int colQuantum();

    /** Rows per call from which the engine runs at its full rate. */
    long blockRows();

    /** A packed B of up to this many bytes stays in a near cache between two products. */
    default long cacheBytes() {
        return 1L << 20;
    }

    /** What an engine promises about the bits of its products. */
    enum Bits {
        /**
         * Each element is the chain of fused multiply-adds over k in order, in fp32, or that of
         * {@link dev.weft.gemm.code.BlockKernel}: the same on every machine, in any call and with
         * any other rows and columns.
         */
        PORTABLE,
        /**
         * The same in any call and with any other rows, but only with this engine: it adds in its
         * own order.
         */
        OWN,
        /** None; only the float64 bound holds. */
        NONE
    }

    default Bits bits() {
        return Bits.PORTABLE;
    }

    /**
     * The quantum of K for products that continue each other. If every part of K but the last is a
     * multiple of it, the result has the bits of the whole product, as far as {@link #bits}
     * promises any.
     */
    default int sumQuantum() {
        return 1;
    }

    /** Whether A and B may be of this type: never one with scales. C may be of any. */
    default boolean multiplies(DType type) {
        return !type.isScaled();
    }

    /**
     * Copies B into the layout that this engine reads.
     *
     * @param b [K, N], or [N, K] if {@code transposed}
     */
    default PackedB pack(Matrix b, boolean transposed, Arena arena) {
        long k = transposed ? b.cols() : b.rows();
        long n = transposed ? b.rows() : b.cols();
        DType type = b.dtype();
        PackedB packed = packed(k, n, type, LargePages.allocate(packedBytes(k, n, type), arena));
        packed.fill(b, transposed, 0, 1);
        return packed;
    }

    /** Bytes that {@link #packed} needs for a B of [k, n] of a type. */
    long packedBytes(long k, long n, DType type);

    /**
     * A packed B in the caller's memory, to be filled by {@link PackedB#fill}, or already filled by
     * another rank.
     *
     * @param type the type of B, which stays 16 bits if the engine widens it on use
     * @param memory at least {@link #packedBytes}, initially zero, aligned for vectors
     */
    PackedB packed(long k, long n, DType type, MemorySegment memory);

    /** Working memory for one thread and products of up to [any, k] with [k, n]. */
    Scratch scratch(long k, long n, Arena arena);

    /** Engines whose kinds are equal can use each other's {@link #scratch}. */
    default Object scratchKind() {
        return this;
    }

    /** Computes {@code rows} rows of C, with all columns, from the same number of rows of A. */
    default void multiply(
            Matrix a, long aRow, long rows, PackedB b, Matrix c, long cRow, Scratch scratch) {
        multiply(a, aRow, rows, b, 0, b.n(), c, cRow, scratch);
    }

    /** Computes rows and columns of C from zero, whatever C holds. */
    default void multiply(
            Matrix a,
            long aRow,
            long rows,
            PackedB b,
            long firstCol,
            long cols,
            Matrix c,
            long cRow,
            Scratch scratch) {
        multiply(a, aRow, rows, b, firstCol, cols, false, c, cRow, scratch);
    }

    /**
     * Computes {@code cols} columns of {@code rows} rows of C from the same number of rows of A.
     * Several threads may compute columns of the same rows. What {@link #bits} promises for any
     * rows also holds for any columns. Allocates nothing on the heap.
     *
     * <p>A product may continue another: each element is then the chain of fused multiply-adds that
     * begins with what C holds, and a K of 0 leaves C as it is. So a product whose K is cut into
     * parts, multiplied in K's order, has the bits of the whole (see {@link #sumQuantum}).
     *
     * @param a [any, K], rows from {@code aRow} on
     * @param b packed by this engine
     * @param firstCol a multiple of {@link #colQuantum}
     * @param cols up to N, or a multiple of {@link #colQuantum}
     * @param resume whether to continue what C holds, instead of starting from +0; C must then be
     *     fp32 off the heap
     * @param c [any, N] of any type, rows from {@code cRow} and columns from {@code firstCol} on
     *     are overwritten; it shares no memory with A
     */
    void multiply(
            Matrix a,
            long aRow,
            long rows,
            PackedB b,
            long firstCol,
            long cols,
            boolean resume,
            Matrix c,
            long cRow,
            Scratch scratch);

    /** Refuses operands that do not fit each other; shared by all engines. */
    static void check(
            Matrix a,
            long aRow,
            long rows,
            PackedB b,
            long firstCol,
            long cols,
            int colQuantum,
            boolean resume,
            Matrix c,
            long cRow) {
        if (a.cols() != b.k() || c.cols() != b.n()) {
            throw new IllegalArgumentException(
                    "cannot multiply %s by a packed [%s, %s] into %s"
                            .formatted(a.describe(), b.k(), b.n(), c.describe()));
        }
        if (a.dtype().isScaled()) {
            throw new IllegalArgumentException(
                    "A is %s: expected fp32, fp16 or bf16, with its scales applied"
                            .formatted(a.describe()));
        }
        if (aRow < 0 || cRow < 0 || rows < 0 || aRow > a.rows() - rows || cRow > c.rows() - rows) {
            throw new IllegalArgumentException(
                    "%s rows from row %s of %s into row %s of %s lie outside"
                            .formatted(rows, aRow, a.describe(), cRow, c.describe()));
        }
        boolean inside = firstCol >= 0 && cols >= 0 && firstCol <= b.n() - cols;
        boolean whole = cols % colQuantum == 0 || firstCol + cols == b.n();
        if (!inside || firstCol % colQuantum != 0 || !whole) {
            throw new IllegalArgumentException(
                    "%s columns from column %s of %s: expected multiples of %s, or up to the last"
                            .formatted(cols, firstCol, b.n(), colQuantum));
        }
        boolean sums = c.dtype() == DType.FP32 && c.data().isNative() && !c.data().isReadOnly();
        if (resume && !sums) {
            throw new IllegalArgumentException(
                    "cannot go on from C %s%s%s: expected fp32 off the heap that may be written"
                            .formatted(
                                    c.describe(),
                                    c.data().isNative() ? "" : " on the heap",
                                    c.data().isReadOnly() ? ", read-only" : ""));
        }
    }
}
