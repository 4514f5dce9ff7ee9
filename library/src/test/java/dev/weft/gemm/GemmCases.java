package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.fail;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/** Operands for tests of engines, and a product of them that is too simple to be wrong. */
final class GemmCases {

    private GemmCases() {}

    /** Normally distributed values: unlike small integers, their sums depend on the order. */
    static Matrix normal(Arena arena, DType dtype, long rows, long cols, Random random) {
        return normal(arena, dtype, rows, cols, cols, random);
    }

    static Matrix normal(
            Arena arena, DType dtype, long rows, long cols, long pitch, Random random) {
        MemorySegment data = arena.allocate(Math.max(1, rows * pitch * dtype.bytes()), 64);
        Matrix matrix = new Matrix(data, dtype, rows, cols, pitch);
        for (long row = 0; row < rows; row++) {
            for (long col = 0; col < cols; col++) {
                matrix.set(row, col, (float) random.nextGaussian());
            }
        }
        return matrix;
    }

    /** B with K rows and N columns, stored the other way round where {@code transposed}. */
    static Matrix normalB(
            Arena arena, DType dtype, long k, long n, boolean transposed, Random random) {
        return normal(arena, dtype, transposed ? n : k, transposed ? k : n, random);
    }

    /** The definition of the product, element by element. */
    static Matrix naive(Arena arena, Matrix a, Matrix b, boolean transposed, DType out) {
        long n = transposed ? b.rows() : b.cols();
        Matrix c = Matrix.allocate(arena, out, a.rows(), n);
        naive(a, b, transposed, c);
        return c;
    }

    /** The definition of a product that goes on from what C holds. */
    static void naive(Matrix a, Matrix b, boolean transposed, Matrix c) {
        for (long row = 0; row < a.rows(); row++) {
            for (long col = 0; col < c.cols(); col++) {
                float sum = c.get(row, col);
                for (long k = 0; k < a.cols(); k++) {
                    sum = Math.fma(a.get(row, k), transposed ? b.get(col, k) : b.get(k, col), sum);
                }
                c.set(row, col, sum);
            }
        }
    }

    /** The elements of A x B in float64, or of the product of their magnitudes, row by row. */
    static double[] float64(Matrix a, Matrix b, boolean transposed, boolean magnitudes) {
        long n = transposed ? b.rows() : b.cols();
        double[] elements = new double[Math.toIntExact(a.rows() * n)];
        Float64Oracle oracle = new Float64Oracle(a, b, transposed);
        for (long row = 0; row < a.rows(); row += Float64Tile.ROWS) {
            for (long col = 0; col < n; col += Float64Tile.COLS) {
                Float64Tile tile = new Float64Tile(oracle, a.rows(), i -> i, row, col);
                tile.compute(magnitudes);
                tile.forEach(
                        (i, j, product, magnitude) ->
                                elements[(int) (i * n + j)] = magnitudes ? magnitude : product);
            }
        }
        return elements;
    }

    /** All of A times B, by {@code gemm}. */
    static Matrix product(
            Gemm gemm, Arena arena, Matrix a, Matrix b, boolean transposed, DType out) {
        PackedB packed = gemm.pack(b, transposed, arena);
        Matrix c = Matrix.allocate(arena, out, a.rows(), packed.n());
        Scratch scratch = gemm.scratch(packed.k(), packed.n(), arena);
        gemm.multiply(a, 0, a.rows(), packed, c, 0, scratch);
        return c;
    }

    /**
     * Some rows and columns of A times B, part after part of K, each from where the one before
     * stopped.
     *
     * @param cuts where parts begin and end: 0, any in between, K
     * @param resume whether the first part goes on from what C holds, too
     */
    static void multiplyInParts(
            Gemm gemm,
            Matrix a,
            long aRow,
            long rows,
            Matrix b,
            boolean transposed,
            long[] cuts,
            long firstCol,
            long cols,
            boolean resume,
            Matrix c,
            long cRow) {
        for (int i = 0; i + 1 < cuts.length; i++) {
            long k = cuts[i];
            long depth = cuts[i + 1] - k;
            Matrix partOfA = a.block(0, a.rows(), k, depth);
            Matrix partOfB = transposed ? b.block(0, b.rows(), k, depth) : b.rows(k, depth);
            try (Arena arena = Arena.ofShared()) {
                gemm.multiply(
                        partOfA,
                        aRow,
                        rows,
                        gemm.pack(partOfB, transposed, arena),
                        firstCol,
                        cols,
                        resume || i > 0,
                        c,
                        cRow,
                        gemm.scratch(depth, c.cols(), arena));
            }
        }
    }

    /** Up to seven parts at multiples of {@code quantum}, some of them empty or the smallest. */
    static long[] cuts(long k, int quantum, Random random) {
        long[] cuts = new long[2 + random.nextInt(7)];
        for (int i = 1; i < cuts.length - 1; i++) {
            cuts[i] = random.nextLong(k / quantum + 1) * quantum;
            if (random.nextInt(3) == 0) {
                cuts[i] = Math.min(cuts[i - 1] + quantum, k / quantum * quantum);
            }
        }
        cuts[cuts.length - 1] = k;
        Arrays.sort(cuts);
        return cuts;
    }

    /** Compares bits; NaNs are equal whatever their payload. */
    static void assertSame(Matrix expected, Matrix actual, String what) {
        assertEquals(expected.describe(), actual.describe(), what);
        for (long row = 0; row < expected.rows(); row++) {
            for (long col = 0; col < expected.cols(); col++) {
                float wanted = expected.get(row, col);
                float found = actual.get(row, col);
                if (Float.floatToIntBits(wanted) != Float.floatToIntBits(found)) {
                    fail(what + ": [" + row + ", " + col + "] is " + found + ", not " + wanted);
                }
            }
        }
    }

    /** Nothing to sum gives plus zero, and nothing to write is fine. */
    static void assertEmptyProductsAreZero(Gemm gemm) {
        try (Arena arena = Arena.ofConfined()) {
            Matrix emptyA = Matrix.allocate(arena, DType.FP32, 3, 0);
            Matrix emptyB = Matrix.allocate(arena, DType.FP32, 0, 5);
            Matrix c = normal(arena, DType.FP32, 3, 5, new Random(1));
            Scratch scratch = gemm.scratch(0, 5, arena);
            gemm.multiply(emptyA, 0, 3, gemm.pack(emptyB, false, arena), c, 0, scratch);
            assertSame(Matrix.allocate(arena, DType.FP32, 3, 5), c, "K = 0");

            Matrix held = normal(arena, DType.FP32, 3, 5, new Random(4));
            c.copyFrom(held);
            multiplyInParts(gemm, emptyA, 0, 3, emptyB, false, new long[2], 0, 5, true, c, 0);
            assertSame(held, c, "K = 0 that goes on from C");

            Matrix a = normal(arena, DType.FP32, 3, 4, new Random(2));
            Matrix noColumns = Matrix.allocate(arena, DType.FP32, 4, 0);
            assertEquals(0, product(gemm, arena, a, noColumns, false, DType.FP16).cols());
            Matrix b = normal(arena, DType.FP32, 4, 3, new Random(3));
            assertEquals(0, product(gemm, arena, a.rows(0, 0), b, false, DType.FP16).rows());
        }
    }

    /** Each of 16 threads multiplies as many rows, with scratch of its own. */
    static Matrix productOf16Threads(Gemm gemm, Arena arena, Matrix a, Matrix b) {
        PackedB packed = gemm.pack(b, false, arena);
        Matrix c = Matrix.allocate(arena, DType.FP32, a.rows(), b.cols());
        long rows = a.rows() / 16;
        IntStream.range(0, 16)
                .parallel()
                .forEach(
                        i -> {
                            Scratch scratch = gemm.scratch(a.cols(), b.cols(), arena);
                            gemm.multiply(a, rows * i, rows, packed, c, rows * i, scratch);
                        });
        return c;
    }

    static void assertAllocatesNothing(Gemm gemm) {
        Random random = new Random(18);
        try (Arena arena = Arena.ofConfined()) {
            PackedB packed = gemm.pack(normal(arena, DType.FP32, 40, 50, random), false, arena);
            Scratch scratch = gemm.scratch(40, 50, arena);
            for (DType dtype : DType.UNSCALED) {
                Matrix a = normal(arena, dtype, 9, 40, random);
                Matrix c = Matrix.allocate(arena, dtype, 9, 50);
                long least = Long.MAX_VALUE;
                // The JIT compiler takes its time; code that boxes would never come to this.
                long giveUpNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
                while (least > 0 && System.nanoTime() < giveUpNs) {
                    long before = ThreadAllocation.bytes();
                    for (int i = 0; i < 100; i++) {
                        boolean resume = dtype == DType.FP32 && i % 2 == 1;
                        gemm.multiply(a, 0, 9, packed, 0, 50, resume, c, 0, scratch);
                    }
                    least = Math.min(least, ThreadAllocation.bytes() - before);
                }
                assertEquals(0, least, "bytes in 100 calls with " + dtype);
            }
        }
    }
}
