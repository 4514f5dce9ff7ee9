package dev.weft.gemm;

import dev.weft.ffi.OpenBlas;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.ref.Reference;

/**
 * OpenBLAS's fp32 product, if the library is installed. It stays within the float64 bound, but
 * OpenBLAS chooses its kernel by the number of rows, so equal rows may differ in their last bits
 * from call to call. Stateless and thread-safe; each call runs only on its caller's thread.
 */
final class OpenBlasGemm implements Gemm {

    /** The height of OpenBLAS's AVX-512 tiles. */
    private static final int ROW_QUANTUM = 16;

    /** A cache line of fp32. */
    private static final int COL_QUANTUM = 16;

    /** OpenBLAS packs B again in every call, which this many rows make cheap. */
    private static final int BLOCK_ROWS = 256;

    /** Without conversion there is no block that rows must fit; sizes have 32 bits. */
    private static final long MAX_CALL_ROWS = 1L << 20;

    /** Refuses if the library is missing, and says how to get it. */
    OpenBlasGemm() {
        OpenBlas.unavailable()
                .ifPresent(
                        why -> {
                            throw new IllegalArgumentException("engine 'openblas': " + why);
                        });
    }

    @Override
    public String name() {
        return "openblas";
    }

    @Override
    public int rowQuantum() {
        return ROW_QUANTUM;
    }

    @Override
    public int colQuantum() {
        return COL_QUANTUM;
    }

    @Override
    public long blockRows() {
        return BLOCK_ROWS;
    }

    @Override
    public Bits bits() {
        return Bits.NONE;
    }

    @Override
    public long packedBytes(long k, long n, DType type) {
        requireSizes(k, n);
        return PackedB.bytes(k, n, panelCols(n), DType.FP32, false);
    }

    /** One panel of all columns and one block of all rows: B as fp32, row after row. */
    @Override
    public PackedB packed(long k, long n, DType type, MemorySegment memory) {
        requireSizes(k, n);
        if (!memory.isNative() || memory.address() % Float.BYTES != 0) {
            throw new IllegalArgumentException(
                    "engine openblas: packed B must lie off the heap and aligned, not at "
                            + memory);
        }
        return new PackedB(k, n, panelCols(n), Math.max(1, k), DType.FP32, false, memory);
    }

    private static void requireSizes(long k, long n) {
        if (k > Integer.MAX_VALUE || n > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "engine openblas: K %s and N %s must be below 2^31, engine portable takes more"
                            .formatted(k, n));
        }
    }

    private static int panelCols(long n) {
        return Math.clamp(n, 1, Integer.MAX_VALUE);
    }

    @Override
    public Scratch scratch(long k, long n, Arena arena) {
        return Converted.allocate(k, n, BLOCK_ROWS, arena);
    }

    @Override
    public Object scratchKind() {
        return OpenBlasGemm.class;
    }

    @Override
    public void multiply(
            Matrix a,
            long aRow,
            long rows,
            PackedB b,
            long firstCol,
            long cols,
            boolean resume,
            Matrix c,
            long cRow,
            Scratch scratch) {
        Gemm.check(a, aRow, rows, b, firstCol, cols, COL_QUANTUM, resume, c, cRow);
        b.requireLayout(panelCols(b.n()), Math.max(1, b.k()), DType.FP32, false, name());
        Converted own = Converted.of(scratch, b.k(), b.n());
        if (rows == 0 || cols == 0 || resume && b.k() == 0) {
            return;
        }
        if (b.k() == 0) {
            fillWithZeros(c.block(cRow, rows, firstCol, cols));
            return;
        }
        boolean readsInPlace = isNativeFp32(a);
        boolean writesInPlace = isNativeFp32(c) && !c.data().isReadOnly();
        long block = readsInPlace && writesInPlace ? MAX_CALL_ROWS : own.blockRows();
        int k = (int) b.k();
        int width = (int) cols;
        try {
            for (long row = 0; row < rows; row += block) {
                int height = (int) Math.min(block, rows - row);
                if (!readsInPlace) {
                    own.widen(a, aRow + row, 0, height, k, own.rows());
                }
                if (resume && !writesInPlace) {
                    own.widen(c, cRow + row, firstCol, height, width, own.sums());
                }
                OpenBlas.sgemm(
                        resume,
                        height,
                        width,
                        k,
                        readsInPlace ? address(a, aRow + row, 0) : address(own.rows()),
                        readsInPlace ? (int) a.rowPitch() : k,
                        address(b.panels()) + firstCol * Float.BYTES,
                        (int) b.n(),
                        writesInPlace ? address(c, cRow + row, firstCol) : address(own.sums()),
                        writesInPlace ? (int) c.rowPitch() : width);
                if (!writesInPlace) {
                    own.narrow(c, cRow + row, firstCol, height, width);
                }
            }
        } finally {
            // Addresses do not keep memory of an automatic arena alive.
            Reference.reachabilityFence(a);
            Reference.reachabilityFence(b);
            Reference.reachabilityFence(c);
            Reference.reachabilityFence(scratch);
        }
    }

    /** Whether OpenBLAS can read the rows in place: off the heap and aligned. */
    private static boolean isNativeFp32(Matrix matrix) {
        return matrix.dtype() == DType.FP32
                && matrix.data().isNative()
                && matrix.data().address() % Float.BYTES == 0
                && matrix.rowPitch() <= Integer.MAX_VALUE;
    }

    private static long address(Matrix matrix, long row, long col) {
        return address(matrix.data()) + matrix.offset(row, col);
    }

    /** Reads one byte: closed memory must cause an exception here, not a crash in native code. */
    private static long address(MemorySegment data) {
        data.get(ValueLayout.JAVA_BYTE, 0);
        return data.address();
    }

    private static void fillWithZeros(Matrix c) {
        for (long row = 0; row < c.rows(); row++) {
            for (long col = 0; col < c.cols(); col++) {
                c.set(row, col, 0f);
            }
        }
    }

    /**
     * A block of rows of A and one of C as fp32 without gaps, for operands that native code cannot
     * read or write in place. Lives as long as its arena.
     *
     * @param blockRows the rows that fit at a time
     */
    record Converted(
            long maxK,
            long maxN,
            int blockRows,
            MemorySegment rows,
            MemorySegment sums,
            RowConverter converter)
            implements Scratch {

        /** Few enough rows that very long ones stay below 256 MiB. */
        private static final long MAX_FLOATS = 1L << 26;

        static Converted allocate(long maxK, long maxN, int wantedRows, Arena arena) {
            int blockRows = Math.clamp(MAX_FLOATS / Math.max(1, maxK + maxN), 1, wantedRows);
            return new Converted(
                    maxK,
                    maxN,
                    blockRows,
                    arena.allocate(blockRows * maxK * Float.BYTES, PackedB.ALIGNMENT_BYTES),
                    arena.allocate(blockRows * maxN * Float.BYTES, PackedB.ALIGNMENT_BYTES),
                    new RowConverter());
        }

        /**
         * The scratch behind {@code scratch}; refuses another engine's, or one for fewer columns.
         */
        static Converted of(Scratch scratch, long k, long n) {
            Converted own = Scratch.of(Converted.class, scratch, "openblas");
            if (own.maxK < k || own.maxN < n) {
                throw new IllegalArgumentException(
                        "scratch for %s columns of A and %s of B, the product has %s and %s"
                                .formatted(own.maxK, own.maxN, k, n));
            }
            return own;
        }

        /** Copies a block, widened to fp32, to the beginning of {@code to}, without gaps. */
        void widen(Matrix from, long row, long col, int height, int width, MemorySegment to) {
            for (int i = 0; i < height; i++) {
                converter.widen(from, row + i, col, width, to, (long) i * width * Float.BYTES);
            }
        }

        /** Rounds the sums, which have no gaps, into a block. */
        void narrow(Matrix to, long row, long col, int height, int width) {
            for (int i = 0; i < height; i++) {
                converter.narrow(sums, (long) i * width * Float.BYTES, width, to, row + i, col);
            }
        }
    }
}
