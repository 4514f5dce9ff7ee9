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
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.ffi.OpenBlas;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/**
 * Bits are compared where operands are small integers, whose sums are exact in any order;
 * everything else is held to the float64 bound.
 */
class OpenBlasGemmTest {

    private Gemm gemm;

    @BeforeEach
    void assumeInstalled() {
        assumeTrue(
                OpenBlas.unavailable().isEmpty(),
                () -> "no OpenBLAS: " + OpenBlas.unavailable().orElseThrow());
        gemm = new OpenBlasGemm();
    }

    /** Values from -4 to 4: exact in every type, and so are sums of up to 2^20 products. */
    private static Matrix integers(
            Arena arena, DType dtype, long rows, long cols, long pitch, Random random) {
        MemorySegment data = arena.allocate(Math.max(1, rows * pitch * dtype.bytes()), 64);
        Matrix matrix = new Matrix(data, dtype, rows, cols, pitch);
        for (long row = 0; row < rows; row++) {
            for (long col = 0; col < cols; col++) {
                matrix.set(row, col, random.nextInt(9) - 4);
            }
        }
        return matrix;
    }

    private static Matrix integers(Arena arena, DType dtype, long rows, long cols, Random random) {
        return integers(arena, dtype, rows, cols, cols, random);
    }

    private static void assertWithinBound(Matrix a, Matrix b, boolean transposed, Matrix c) {
        Deviation deviation = new Float64Oracle(a, b, transposed).check(c);
        assertTrue(deviation.withinBound(), deviation.describe());
        assertEquals(c.rows() * c.cols(), deviation.elements());
    }

    @Test
    void goesByNameAndPromisesNoBits() {
        assertInstanceOf(OpenBlasGemm.class, Gemms.byName("openblas"));
        assertEquals("openblas", gemm.name());
        assertEquals(Gemm.Bits.NONE, gemm.bits());
        assertEquals(Gemm.Bits.PORTABLE, new TiledGemm(new ScalarTiles()).bits());
    }

    @Test
    void everyTailIsExactOnIntegers() {
        Random random = new Random(31);
        for (int k : new int[] {1, 2, 15, 16, 17, 64, 131}) {
            for (int n : new int[] {1, 2, 15, 16, 17, 65}) {
                try (Arena arena = Arena.ofConfined()) {
                    Matrix a = integers(arena, DType.FP32, 35, k, random);
                    Matrix b = integers(arena, DType.FP32, k, n, random);
                    Matrix expected = naive(arena, a, b, false, DType.FP32);
                    for (int rows = 0; rows <= 35; rows++) {
                        Matrix c = product(gemm, arena, a.rows(0, rows), b, false, DType.FP32);
                        assertSame(expected.rows(0, rows), c, rows + " x " + k + " x " + n);
                    }
                }
            }
        }
    }

    @Test
    void columnsInPartsAreExactOnIntegers() {
        Random random = new Random(38);
        for (DType type : DType.UNSCALED) {
            try (Arena arena = Arena.ofConfined()) {
                Matrix a = integers(arena, type, 19, 40, random);
                Matrix b = integers(arena, DType.FP32, 40, 70, random);
                Matrix c = integers(arena, DType.FP32, 19, 70, 75, random);
                Matrix expected = Matrix.allocate(arena, DType.FP32, 19, 70);
                expected.copyFrom(c);
                Matrix whole = naive(arena, a, b, false, DType.FP32);
                PackedB packed = gemm.pack(b, false, arena);
                Scratch scratch = gemm.scratch(40, 70, arena);
                for (int[] part : new int[][] {{32, 16}, {48, 22}, {0, 32}}) {
                    gemm.multiply(a, 0, 19, packed, part[0], part[1], c, 0, scratch);
                    expected.copyBlock(whole, 0, part[0], 0, part[0], 19, part[1]);
                    assertSame(expected, c, type + " from column " + part[0]);
                }
            }
        }
    }

    @Test
    void partsOfKThatGoOnFromEachOtherAreExactOnIntegersAndElseWithinTheBound() {
        Random random = new Random(39);
        for (DType type : DType.UNSCALED) {
            for (int byteOffset : new int[] {0, 1}) {
                try (Arena arena = Arena.ofShared()) {
                    MemorySegment memory = arena.allocate(300 * 23 * Float.BYTES + byteOffset);
                    Matrix c = Matrix.of(memory.asSlice(byteOffset), DType.FP32, 300, 23);
                    Matrix a = integers(arena, type, 300, 90, 93, random);
                    Matrix b = integers(arena, type, 90, 23, random);
                    Matrix expected = integers(arena, DType.FP32, 300, 23, random);
                    c.copyFrom(expected);
                    naive(a, b, false, expected.block(0, 300, 0, 16));
                    long[] cuts = cuts(90, 1, random);
                    multiplyInParts(gemm, a, 0, 300, b, false, cuts, 0, 16, true, c, 0);
                    assertSame(expected, c, type + " " + Arrays.toString(cuts));

                    a = normal(arena, type, 300, 90, random);
                    b = normal(arena, type, 90, 23, random);
                    multiplyInParts(gemm, a, 0, 300, b, false, cuts, 0, 23, false, c, 0);
                    assertWithinBound(a, b, false, c);
                }
            }
        }
    }

    @Test
    void allTypesInBothLayouts() {
        Random random = new Random(32);
        for (DType typeA : DType.UNSCALED) {
            for (DType typeB : DType.UNSCALED) {
                for (boolean transposed : new boolean[] {false, true}) {
                    try (Arena arena = Arena.ofShared()) {
                        Matrix a = normal(arena, typeA, 300, 77, random);
                        Matrix b = normalB(arena, typeB, 77, 21, transposed, random);
                        for (DType out : DType.UNSCALED) {
                            Matrix c = product(gemm, arena, a, b, transposed, out);
                            assertWithinBound(a, b, transposed, c);
                        }
                    }
                }
            }
        }
    }

    @Test
    void severalBlocksOfRows() {
        Random random = new Random(33);
        try (Arena arena = Arena.ofShared()) {
            for (DType dtype : DType.UNSCALED) {
                Matrix a = integers(arena, dtype, 2 * gemm.blockRows() + 3, 19, random);
                Matrix b = integers(arena, dtype, 19, 23, random);
                Matrix expected = naive(arena, a, b, false, dtype);
                assertSame(expected, product(gemm, arena, a, b, false, dtype), dtype.label());
            }
        }
    }

    @Test
    void pitchesAndRowOffsetsTouchNothingElse() {
        Random random = new Random(34);
        int k = 37;
        int n = 29;
        for (DType typeA : DType.UNSCALED) {
            for (DType typeC : DType.UNSCALED) {
                try (Arena arena = Arena.ofConfined()) {
                    Matrix a = integers(arena, typeA, 20, k, k + 7, random);
                    Matrix b = integers(arena, DType.BF16, k, n, n + 5, random);
                    Matrix c = normal(arena, typeC, 25, n + 4, random);
                    Matrix before = Matrix.allocate(arena, typeC, 25, n + 4);
                    before.copyFrom(c);
                    Matrix expected = naive(arena, a.rows(3, 11), b, false, typeC);
                    Scratch scratch = gemm.scratch(k + 100, n + 100, arena);
                    PackedB packed = gemm.pack(b, false, arena);
                    gemm.multiply(a, 3, 11, packed, c.block(0, 25, 0, n), 9, scratch);
                    before.block(9, 11, 0, n).copyFrom(expected);
                    assertSame(before, c, "whole of C, " + typeA + " to " + typeC);
                }
            }
        }
    }

    @Test
    void viewsMayLieOnTheHeapAndStartAtAnyByte() {
        Random random = new Random(35);
        for (DType dtype : DType.UNSCALED) {
            try (Arena arena = Arena.ofConfined()) {
                Matrix a = integers(arena, dtype, 6, 37, random);
                Matrix b = integers(arena, dtype, 37, 17, random);
                Matrix expected = naive(arena, a, b, false, dtype);
                PackedB packed = gemm.pack(b, false, arena);
                Scratch scratch = gemm.scratch(37, 17, arena);
                int bytesA = (int) a.elementBytes();
                int bytesC = (int) expected.elementBytes();
                MemorySegment[][] memories = {
                    {MemorySegment.ofArray(new byte[bytesA]), arena.allocate(bytesC)},
                    {arena.allocate(bytesA), MemorySegment.ofArray(new byte[bytesC])},
                    {arena.allocate(bytesA + 1).asSlice(1), arena.allocate(bytesC + 1).asSlice(1)}
                };
                for (MemorySegment[] memory : memories) {
                    Matrix left = Matrix.of(memory[0], dtype, 6, 37);
                    left.copyFrom(a);
                    Matrix c = Matrix.of(memory[1], dtype, 6, 17);
                    gemm.multiply(left, 0, 6, packed, c, 0, scratch);
                    assertSame(expected, c, dtype + " in " + memory[0] + " to " + memory[1]);
                }
            }
        }
    }

    @Test
    void nothingToSumGivesPlusZeroAndNothingToWriteIsFine() {
        assertEmptyProductsAreZero(gemm);
    }

    @Test
    void valuesThatAreThereBeforeDoNotShineThrough() {
        Random random = new Random(36);
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = integers(arena, DType.FP32, 9, 6, random);
            Matrix b = integers(arena, DType.FP32, 6, 11, random);
            Matrix c = Matrix.allocate(arena, DType.FP32, 9, 11);
            c.data().fill((byte) 0xFF);
            Scratch scratch = gemm.scratch(6, 11, arena);
            gemm.multiply(a, 0, 9, gemm.pack(b, false, arena), c, 0, scratch);
            assertSame(naive(arena, a, b, false, DType.FP32), c, "over NaNs");
        }
    }

    @Test
    void staysWithinTheFloat64BoundForManyColumns() {
        Random random = new Random(37);
        try (Arena arena = Arena.ofShared()) {
            for (DType dtype : DType.UNSCALED) {
                Matrix a = normal(arena, dtype, 19, 1500, random);
                Matrix b = normalB(arena, dtype, 1500, 70, true, random);
                assertWithinBound(a, b, true, product(gemm, arena, a, b, true, dtype));
            }
        }
    }

    @Test
    void threadsWithScratchOfTheirOwnDoNotDisturbEachOther() {
        Random random = new Random(38);
        try (Arena arena = Arena.ofShared()) {
            Matrix a = integers(arena, DType.FP16, 160, 300, random);
            Matrix b = integers(arena, DType.FP16, 300, 90, random);
            Matrix c = productOf16Threads(gemm, arena, a, b);
            assertSame(naive(arena, a, b, false, DType.FP32), c, "16 parts");
        }
    }

    @Test
    void multiplyAllocatesNothing() {
        assertAllocatesNothing(gemm);
    }

    private static void assertRefused(Executable call, String part) {
        String message = assertThrows(IllegalArgumentException.class, call).getMessage();
        assertTrue(message.contains(part), message);
    }

    @Test
    void refusesWhatIsNotItsOwn() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = Matrix.allocate(arena, DType.FP32, 4, 6);
            Matrix b = Matrix.allocate(arena, DType.FP32, 6, 5);
            Matrix c = Matrix.allocate(arena, DType.FP32, 4, 5);
            PackedB own = gemm.pack(b, false, arena);
            Scratch scratch = gemm.scratch(6, 5, arena);
            Gemm scalar = new TiledGemm(new ScalarTiles());
            PackedB foreign = scalar.pack(b, false, arena);
            assertRefused(
                    () -> gemm.multiply(a, 0, 4, foreign, c, 0, scratch), "engine openblas reads");
            Scratch others = scalar.scratch(6, 5, arena);
            assertRefused(
                    () -> gemm.multiply(a, 0, 4, own, c, 0, others), "scratch of another engine");
            Scratch narrow = gemm.scratch(6, 4, arena);
            assertRefused(
                    () -> gemm.multiply(a, 0, 4, own, c, 0, narrow), "6 columns of A and 4 of B");
            assertRefused(() -> gemm.multiply(a, 1, 4, own, c, 0, scratch), "4 rows from row 1");
            assertRefused(() -> gemm.packedBytes(1L << 31, 5, DType.FP32), "K 2147483648 and N 5");
            MemorySegment heap = MemorySegment.ofArray(new float[30]);
            assertRefused(() -> gemm.packed(6, 5, DType.FP32, heap), "off the heap");
        }
    }

    /** Native code would crash where Java throws. */
    @Test
    void memoryThatIsClosedOrReadOnlyIsNotTouched() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = Matrix.allocate(arena, DType.FP32, 4, 6);
            Matrix c = Matrix.allocate(arena, DType.FP32, 4, 5);
            PackedB packed = gemm.pack(Matrix.allocate(arena, DType.FP32, 6, 5), false, arena);
            Scratch scratch = gemm.scratch(6, 5, arena);
            Arena closed = Arena.ofConfined();
            Matrix gone = Matrix.allocate(closed, DType.FP32, 4, 6);
            closed.close();
            assertThrows(
                    IllegalStateException.class,
                    () -> gemm.multiply(gone, 0, 4, packed, c, 0, scratch));
            Matrix readOnly = Matrix.of(c.data().asReadOnly(), DType.FP32, 4, 5);
            assertThrows(
                    RuntimeException.class,
                    () -> gemm.multiply(a, 0, 4, packed, readOnly, 0, scratch));
        }
    }
}
