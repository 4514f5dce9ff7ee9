package dev.weft.gemm;

import static dev.weft.gemm.GemmCases.assertAllocatesNothing;
import static dev.weft.gemm.GemmCases.assertEmptyProductsAreZero;
import static dev.weft.gemm.GemmCases.assertSame;
import static dev.weft.gemm.GemmCases.cuts;
import static dev.weft.gemm.GemmCases.multiplyInParts;
import static dev.weft.gemm.GemmCases.naive;
import static dev.weft.gemm.GemmCases.normal;
import static dev.weft.gemm.GemmCases.normalB;
import static dev.weft.gemm.GemmCases.product;
import static dev.weft.gemm.GemmCases.productOf16Threads;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** What every engine promises. Subclasses name the engine and the sizes at which it cuts work. */
abstract class GemmContract {

    abstract Gemm gemm();

    /** Columns of one panel of packed B. */
    abstract int panelCols();

    /** Rows of one block of packed B, or any number where K is not cut. */
    abstract int blockDepth();

    @Test
    void everyTailIsTheChainOfFusedMultiplyAdds() {
        Gemm gemm = gemm();
        Random random = new Random(11);
        int nr = panelCols();
        int depth = blockDepth();
        int maxRows = 3 * gemm.rowQuantum() + 1;
        for (int k : new int[] {1, 2, depth - 1, depth, depth + 1, 2 * depth + 3}) {
            for (int n : new int[] {1, nr / 4 + 1, nr - 1, nr, nr + 1, 2 * nr + 3}) {
                try (Arena arena = Arena.ofConfined()) {
                    Matrix a = normal(arena, DType.FP32, maxRows, k, random);
                    Matrix b = normalB(arena, DType.FP32, k, n, false, random);
                    Matrix expected = naive(arena, a, b, false, DType.FP32);
                    for (int rows = 0; rows <= maxRows; rows++) {
                        Matrix c = product(gemm, arena, a.rows(0, rows), b, false, DType.FP32);
                        assertSame(expected.rows(0, rows), c, rows + " x " + k + " x " + n);
                    }
                }
            }
        }
    }

    @Test
    void severalBlocksOfRowsAndColumns() {
        Random random = new Random(12);
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = normal(arena, DType.FP32, 261, blockDepth() + 9, random);
            Matrix b = normal(arena, DType.FP32, blockDepth() + 9, 1100, random);
            Matrix c = product(gemm(), arena, a, b, false, DType.FP32);
            for (long row : new long[] {0, 1, 86, 87, 88, 127, 128, 129, 256, 260}) {
                Matrix expected = naive(arena, a.rows(row, 1), b, false, DType.FP32);
                assertSame(expected, c.rows(row, 1), "row " + row);
            }
            Deviation deviation = new Float64Oracle(a, b, false).check(c);
            assertTrue(deviation.withinBound(), deviation.describe());
        }
    }

    @Test
    void allTypesInBothLayouts() {
        Random random = new Random(13);
        int k = blockDepth() + 5;
        int n = panelCols() + 2;
        for (DType typeA : DType.UNSCALED) {
            for (DType typeB : DType.UNSCALED) {
                for (boolean transposed : new boolean[] {false, true}) {
                    try (Arena arena = Arena.ofConfined()) {
                        Matrix a = normal(arena, typeA, 5, k, random);
                        Matrix b = normalB(arena, typeB, k, n, transposed, random);
                        for (DType out : DType.UNSCALED) {
                            assertSame(
                                    naive(arena, a, b, transposed, out),
                                    product(gemm(), arena, a, b, transposed, out),
                                    typeA + " x " + typeB + " -> " + out + ", " + transposed);
                        }
                    }
                }
            }
        }
    }

    @Test
    void pitchesAndRowOffsetsTouchNothingElse() {
        Random random = new Random(14);
        Gemm gemm = gemm();
        int k = blockDepth() + 1;
        int n = panelCols() + 3;
        for (DType dtype : DType.UNSCALED) {
            try (Arena arena = Arena.ofConfined()) {
                Matrix a = normal(arena, dtype, 20, k, k + 7, random);
                Matrix b = normal(arena, dtype, k, n, n + 5, random);
                Matrix c = normal(arena, dtype, 25, n + 4, random);
                Matrix before = Matrix.allocate(arena, dtype, 25, n + 4);
                before.copyFrom(c);
                Matrix expected = naive(arena, a.rows(3, 11), b, false, dtype);
                Matrix target = c.block(0, 25, 0, n);
                Scratch scratch = gemm.scratch(k + 100, n + 100, arena);
                gemm.multiply(a, 3, 11, gemm.pack(b, false, arena), target, 9, scratch);
                before.block(9, 11, 0, n).copyFrom(expected);
                assertSame(before, c, "whole of C " + dtype);
            }
        }
    }

    @Test
    void columnsCutInAnyWayGiveTheSameBitsAndTouchNothingElse() {
        Random seeds = new Random(22);
        Gemm gemm = gemm();
        for (int i = 0; i < 40; i++) {
            long seed = seeds.nextLong();
            Random random = new Random(seed);
            int rows = 1 + random.nextInt(3 * gemm.rowQuantum());
            int k = 1 + random.nextInt(2 * blockDepth());
            int n = 1 + random.nextInt(9 * panelCols());
            DType type = DType.UNSCALED.get(random.nextInt(3));
            DType out = DType.UNSCALED.get(random.nextInt(3));
            try (Arena arena = Arena.ofConfined()) {
                Matrix a = normal(arena, type, rows, k, random);
                Matrix b = normalB(arena, type, k, n, false, random);
                Matrix whole = product(gemm, arena, a, b, false, out);
                PackedB packed = gemm.pack(b, false, arena);
                Matrix c = normal(arena, out, rows, n, n + 3, random);
                Matrix expected = Matrix.allocate(arena, out, rows, n);
                expected.copyFrom(c);
                for (int from = 0; from < n; ) {
                    int panels = random.nextInt(5);
                    int cols = Math.min(n - from, panels * gemm.colQuantum());
                    Scratch scratch = gemm.scratch(k, cols, arena);
                    gemm.multiply(a, 0, rows, packed, from, cols, c, 0, scratch);
                    expected.copyBlock(whole, 0, from, 0, from, rows, cols);
                    from += cols;
                    assertSame(expected, c, "up to column " + from + ", seed " + seed);
                }
            }
        }
    }

    @Test
    void anyPartsOfKThatGoOnFromEachOtherGiveTheWholeProduct() {
        Random seeds = new Random(23);
        Gemm gemm = gemm();
        for (int i = 0; i < 60; i++) {
            long seed = seeds.nextLong();
            Random random = new Random(seed);
            final int rows = random.nextInt(3 * gemm.rowQuantum() + 2);
            final int k = random.nextInt(2 * blockDepth() + 9);
            final int n = 1 + random.nextInt(5 * panelCols());
            final boolean transposed = random.nextBoolean();
            final boolean fromZeros = random.nextBoolean();
            long firstCol = random.nextInt(n) / gemm.colQuantum() * (long) gemm.colQuantum();
            long some = (long) random.nextInt(4) * gemm.colQuantum();
            final long cols = Math.min(n - firstCol, some);
            DType[] types = DType.values();
            try (Arena arena = Arena.ofConfined()) {
                Matrix a = normal(arena, types[random.nextInt(3)], rows + 4, k, k + 5, random);
                Matrix b = normalB(arena, types[random.nextInt(3)], k, n, transposed, random);
                Matrix c = normal(arena, DType.FP32, rows + 5, n + 3, random);
                Matrix target = c.block(0, rows + 5, 0, n);
                Matrix written = c.block(2, rows, firstCol, cols);
                if (fromZeros) {
                    written.copyFrom(Matrix.allocate(arena, DType.FP32, rows, cols));
                }
                Matrix expected = Matrix.allocate(arena, DType.FP32, rows + 5, n + 3);
                expected.copyFrom(c);
                Matrix whole = naive(arena, a.rows(3, rows), b, transposed, DType.FP32);
                expected.copyBlock(whole, 0, firstCol, 2, firstCol, rows, cols);
                long[] cuts = cuts(k, 1, random);
                multiplyInParts(
                        gemm,
                        a,
                        3,
                        rows,
                        b,
                        transposed,
                        cuts,
                        firstCol,
                        cols,
                        fromZeros,
                        target,
                        2);
                assertSame(expected, c, Arrays.toString(cuts) + ", seed " + seed);
            }
        }
    }

    @Test
    void sumsGoOnFromAnyValueInAnyPlace() {
        float[] values = {
            -0f,
            0f,
            3e38f,
            Float.MIN_VALUE,
            -0x1p-126f,
            Float.POSITIVE_INFINITY,
            Float.NEGATIVE_INFINITY,
            Float.NaN
        };
        Random random = new Random(24);
        Gemm gemm = gemm();
        int rows = gemm.rowQuantum() + 1;
        int n = panelCols() + 3;
        for (int k : new int[] {1, 7, blockDepth() + 2}) {
            for (int byteOffset : new int[] {0, 1}) {
                try (Arena arena = Arena.ofConfined()) {
                    Matrix a = normal(arena, DType.FP32, rows, k, random);
                    Matrix b = normal(arena, DType.FP32, k, n, random);
                    Matrix expected = normal(arena, DType.FP32, rows, n, random);
                    for (int i = 0; i < 60; i++) {
                        float value = values[random.nextInt(values.length)];
                        expected.set(random.nextInt(rows), random.nextInt(n), value);
                    }
                    MemorySegment memory = arena.allocate(expected.elementBytes() + byteOffset);
                    Matrix c = Matrix.of(memory.asSlice(byteOffset), DType.FP32, rows, n);
                    c.copyFrom(expected);
                    naive(a, b, false, expected);
                    multiplyInParts(
                            gemm, a, 0, rows, b, false, new long[] {0, k}, 0, n, true, c, 0);
                    assertSame(expected, c, "K = " + k);
                }
            }
        }
    }

    @Test
    void viewsMayStartAtAnyByteAndLieOnTheHeap() {
        Random random = new Random(15);
        int k = 37;
        int n = panelCols() + 1;
        for (DType dtype : DType.UNSCALED) {
            try (Arena arena = Arena.ofConfined()) {
                Matrix a = odd(normal(arena, dtype, 6, k, random));
                Matrix b = odd(normal(arena, dtype, k, n, random));
                Matrix c = odd(Matrix.allocate(arena, dtype, 6, n));
                Gemm gemm = gemm();
                Scratch scratch = gemm.scratch(k, n, arena);
                gemm.multiply(a, 0, 6, gemm.pack(b, false, arena), c, 0, scratch);
                assertSame(naive(arena, a, b, false, dtype), c, "odd views of " + dtype);
            }
        }
    }

    private static Matrix odd(Matrix source) {
        MemorySegment heap = MemorySegment.ofArray(new byte[(int) source.elementBytes() + 1]);
        Matrix copy = Matrix.of(heap.asSlice(1), source.dtype(), source.rows(), source.cols());
        copy.copyFrom(source);
        return copy;
    }

    @Test
    void anySplitOfTheRowsGivesTheSameBits() {
        Gemm gemm = gemm();
        for (long seed = 0; seed < 8; seed++) {
            Random random = new Random(seed);
            int rows = 1 + random.nextInt(200);
            int k = 1 + random.nextInt(2 * blockDepth());
            int n = 1 + random.nextInt(3 * panelCols());
            DType out = DType.values()[random.nextInt(3)];
            try (Arena arena = Arena.ofConfined()) {
                Matrix a = normal(arena, DType.BF16, rows, k, random);
                Matrix b = normal(arena, DType.FP32, k, n, random);
                Matrix whole = product(gemm, arena, a, b, false, out);
                Matrix pieces = Matrix.allocate(arena, out, rows, n);
                PackedB packed = gemm.pack(b, false, arena);
                Scratch scratch = gemm.scratch(k, n, arena);
                for (long row = 0; row < rows; ) {
                    long count = Math.min(rows - row, random.nextInt(40));
                    gemm.multiply(a, row, count, packed, pieces, row, scratch);
                    row += count;
                }
                assertTrue(
                        whole.bitwiseEquals(pieces),
                        "seed " + seed + ": row " + whole.firstDifferentRow(pieces) + " differs");
            }
        }
    }

    @Test
    void nothingToSumGivesPlusZeroAndNothingToWriteIsFine() {
        assertEmptyProductsAreZero(gemm());
    }

    @Test
    void specialValuesAreThoseOfTheChain() {
        float[] values = {
            0f,
            -0f,
            1f,
            -1f,
            3e38f,
            -3e38f,
            1e-30f,
            -1e-30f,
            Float.MIN_VALUE,
            -Float.MIN_VALUE,
            0x1p-126f,
            1e5f,
            0x1p-24f,
            0x1p-14f,
            Float.POSITIVE_INFINITY,
            Float.NEGATIVE_INFINITY,
            Float.NaN
        };
        for (long seed = 0; seed < 30; seed++) {
            Random random = new Random(seed);
            int finite = random.nextBoolean() ? 3 : 0;
            try (Arena arena = Arena.ofConfined()) {
                Matrix a = normal(arena, DType.values()[random.nextInt(3)], 9, 6, random);
                Matrix b = normal(arena, DType.values()[random.nextInt(3)], 6, 11, random);
                for (Matrix matrix : new Matrix[] {a, b}) {
                    for (int i = 0; i < 25; i++) {
                        matrix.set(
                                random.nextLong(matrix.rows()),
                                random.nextLong(matrix.cols()),
                                values[random.nextInt(values.length - finite)]);
                    }
                }
                for (DType out : DType.UNSCALED) {
                    assertSame(
                            naive(arena, a, b, false, out),
                            product(gemm(), arena, a, b, false, out),
                            "seed " + seed + ", " + out);
                }
            }
        }
    }

    @Test
    void signsOfZeroAreThoseOfTheChain() {
        float[] values = {0f, -0f, 0f, -0f, 1f, -1f, 1e-30f, -1e-30f};
        Random random = new Random(19);
        try (Arena arena = Arena.ofConfined()) {
            for (int k = 1; k < 6; k++) {
                Matrix a = Matrix.allocate(arena, DType.FP32, 20, k);
                Matrix b = Matrix.allocate(arena, DType.FP32, k, 60);
                for (Matrix matrix : new Matrix[] {a, b}) {
                    for (long i = 0; i < matrix.rows() * matrix.cols(); i++) {
                        float value = values[random.nextInt(values.length)];
                        matrix.set(i / matrix.cols(), i % matrix.cols(), value);
                    }
                }
                Matrix c = product(gemm(), arena, a, b, false, DType.FP32);
                assertSame(naive(arena, a, b, false, DType.FP32), c, "K = " + k);
            }
        }
    }

    @Test
    void staysWithinTheFloat64Bound() {
        Random random = new Random(16);
        try (Arena arena = Arena.ofConfined()) {
            for (DType dtype : DType.UNSCALED) {
                Matrix a = normal(arena, dtype, 19, 1500, random);
                Matrix b = normalB(arena, dtype, 1500, 70, true, random);
                for (DType out : DType.UNSCALED) {
                    Matrix c = product(gemm(), arena, a, b, true, out);
                    Deviation deviation = new Float64Oracle(a, b, true).check(c);
                    assertTrue(deviation.withinBound(), dtype + ": " + deviation.describe());
                    assertEquals(19 * 70, deviation.elements());
                }
            }
        }
    }

    @Test
    void threadsWithScratchOfTheirOwnDoNotDisturbEachOther() {
        Random random = new Random(17);
        try (Arena arena = Arena.ofShared()) {
            Matrix a = normal(arena, DType.FP16, 160, 300, random);
            Matrix b = normal(arena, DType.FP16, 300, 90, random);
            Matrix expected = product(gemm(), arena, a, b, false, DType.FP32);
            assertTrue(expected.bitwiseEquals(productOf16Threads(gemm(), arena, a, b)));
        }
    }

    @Test
    void multiplyAllocatesNothing() {
        assertAllocatesNothing(gemm());
    }
}
