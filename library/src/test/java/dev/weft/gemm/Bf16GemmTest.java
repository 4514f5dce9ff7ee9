package dev.weft.gemm;

import static dev.weft.gemm.GemmCases.assertSame;
import static dev.weft.gemm.GemmCases.cuts;
import static dev.weft.gemm.GemmCases.multiplyInParts;
import static dev.weft.gemm.GemmCases.naive;
import static dev.weft.gemm.GemmCases.normal;
import static dev.weft.gemm.GemmCases.normalB;
import static dev.weft.gemm.GemmCases.product;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.gemm.code.Bf16Tiles;
import dev.weft.gemm.code.Tiles;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** What an engine for bf16 promises, on tiles in Java that sum as AMX does. */
class Bf16GemmTest {

    private static final Tiles TWIN = new Bf16Tiles();

    /** The tiles under test; a subclass names others. */
    Tiles tiles() {
        return TWIN;
    }

    Gemm gemm() {
        return new TiledGemm(tiles());
    }

    @Test
    void saysWhatItIs() {
        assertEquals(tiles().name(), gemm().name());
        assertEquals(32, gemm().rowQuantum());
        assertEquals(Gemm.Bits.OWN, gemm().bits());
        assertTrue(gemm().multiplies(DType.BF16));
        assertFalse(gemm().multiplies(DType.FP16));
    }

    /** Sums of whole numbers are exact in any order, so that every place is known. */
    @Test
    void wholeNumbersAreExactWithAnyTail() {
        Random random = new Random(1);
        for (int k : new int[] {1, 2, 31, 32, 33, 511, 512, 513, 1100}) {
            for (int n : new int[] {1, 15, 16, 17, 31, 32, 33, 70}) {
                boolean transposed = random.nextBoolean();
                try (Arena arena = Arena.ofConfined()) {
                    Matrix a = whole(arena, 1 + random.nextInt(70), k, random);
                    Matrix b = whole(arena, transposed ? n : k, transposed ? k : n, random);
                    for (DType out : DType.UNSCALED) {
                        assertSame(
                                naive(arena, a, b, transposed, out),
                                product(gemm(), arena, a, b, transposed, out),
                                a.rows() + " x " + k + " x " + n + ", " + transposed);
                    }
                }
            }
        }
    }

    private static Matrix whole(Arena arena, long rows, long cols, Random random) {
        Matrix matrix = Matrix.allocate(arena, DType.BF16, rows, cols);
        for (long i = 0; i < rows * cols; i++) {
            matrix.set(i / cols, i % cols, random.nextInt(-9, 10));
        }
        return matrix;
    }

    /** An element depends on its row of A, its column of B and K, whatever is around it. */
    @Test
    void anyRowsColumnsAndBlocksGiveTheSameBits() {
        for (long seed = 0; seed < 12; seed++) {
            Random random = new Random(seed);
            int rows = 1 + random.nextInt(150);
            int k = 1 + random.nextInt(700);
            int n = 1 + random.nextInt(150);
            DType out = DType.values()[random.nextInt(3)];
            try (Arena arena = Arena.ofConfined()) {
                Matrix a = normal(arena, DType.BF16, rows, k, k + random.nextInt(4), random);
                Matrix b = normalB(arena, DType.BF16, k, n, true, random);
                final Matrix whole = product(gemm(), arena, a, b, true, out);
                Blocking blocking =
                        new Blocking(
                                32 * (1 + random.nextInt(8)),
                                1 + random.nextInt(80),
                                1 + random.nextInt(80),
                                random.nextInt(2) << 20);
                Gemm gemm = new TiledGemm(tiles(), blocking);
                int firstCol = random.nextInt(n);
                Matrix someB = b.rows(firstCol, 1 + random.nextInt(n - firstCol));
                Matrix some = Matrix.allocate(arena, out, rows, someB.rows());
                PackedB packed = gemm.pack(someB, true, arena);
                Scratch scratch = gemm.scratch(k, someB.rows(), arena);
                for (long row = 0; row < rows; ) {
                    long count = Math.min(rows - row, random.nextInt(50));
                    gemm.multiply(a, row, count, packed, some, row, scratch);
                    row += count;
                }
                Matrix expected = whole.block(0, rows, firstCol, someB.rows());
                assertSame(expected, some, "seed " + seed + ", " + blocking);
            }
        }
    }

    /** Bits of the whole product where cuts are multiples of the quantum. */
    @Test
    void partsOfKThatGoOnFromEachOtherGiveTheWholeProduct() {
        assertEquals(32, gemm().sumQuantum());
        for (long seed = 0; seed < 12; seed++) {
            Random random = new Random(seed);
            int rows = 1 + random.nextInt(70);
            int k = random.nextInt(700);
            int n = 1 + random.nextInt(100);
            try (Arena arena = Arena.ofConfined()) {
                Matrix a = normal(arena, DType.BF16, rows, k, k + 3, random);
                Matrix b = normalB(arena, DType.BF16, k, n, true, random);
                Matrix whole = product(gemm(), arena, a, b, true, DType.FP32);
                Gemm gemm =
                        new TiledGemm(
                                tiles(),
                                new Blocking(
                                        32 * (1 + random.nextInt(8)),
                                        1 + random.nextInt(80),
                                        1 + random.nextInt(80),
                                        random.nextInt(2) << 20));
                Matrix around = normal(arena, DType.FP32, rows + 2, n + 2, random);
                Matrix expected = Matrix.allocate(arena, DType.FP32, rows + 2, n + 2);
                expected.copyFrom(around);
                expected.block(1, rows, 0, n).copyFrom(whole);
                Matrix c = around.block(0, rows + 2, 0, n);
                long[] cuts = cuts(k, 32, random);
                multiplyInParts(gemm, a, 0, rows, b, true, cuts, 0, n, false, c, 1);
                assertSame(expected, around, Arrays.toString(cuts) + ", seed " + seed);
            }
        }
    }

    @Test
    void anyPartsOfKAreExactOnWholeNumbers() {
        for (long seed = 0; seed < 12; seed++) {
            Random random = new Random(seed);
            int rows = 1 + random.nextInt(70);
            int k = random.nextInt(300);
            int n = 1 + random.nextInt(70);
            try (Arena arena = Arena.ofConfined()) {
                Matrix a = whole(arena, rows, k, random);
                Matrix b = whole(arena, k, n, random);
                Matrix c = Matrix.allocate(arena, DType.FP32, rows, n);
                long[] cuts = cuts(k, 1, random);
                multiplyInParts(gemm(), a, 0, rows, b, false, cuts, 0, n, true, c, 0);
                Matrix expected = naive(arena, a, b, false, DType.FP32);
                assertSame(expected, c, Arrays.toString(cuts) + ", seed " + seed);
            }
        }
    }

    @Test
    void staysWithinTheFloat64Bound() {
        Random random = new Random(16);
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = normal(arena, DType.BF16, 40, 1500, random);
            Matrix b = normalB(arena, DType.BF16, 1500, 70, false, random);
            for (DType out : DType.UNSCALED) {
                Matrix c = product(gemm(), arena, a, b, false, out);
                Deviation deviation = new Float64Oracle(a, b, false).check(c);
                assertTrue(deviation.withinBound(), deviation.describe());
            }
        }
    }

    @Test
    void matricesOnTheHeapAndAtOddBytesAreFine() {
        Random random = new Random(17);
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = normal(arena, DType.BF16, 35, 77, random);
            Matrix b = normal(arena, DType.BF16, 77, 45, random);
            Matrix expected = product(gemm(), arena, a, b, false, DType.FP32);
            Matrix c = odd(Matrix.allocate(arena, DType.FP32, 35, 45));
            Gemm gemm = gemm();
            PackedB packed = gemm.pack(odd(b), false, arena);
            gemm.multiply(odd(a), 0, 35, packed, c, 0, gemm.scratch(77, 45, arena));
            assertSame(expected, c, "on the heap");
        }
    }

    private static Matrix odd(Matrix source) {
        MemorySegment heap = MemorySegment.ofArray(new byte[(int) source.elementBytes() + 1]);
        Matrix copy = Matrix.of(heap.asSlice(1), source.dtype(), source.rows(), source.cols());
        copy.copyFrom(source);
        return copy;
    }

    @Test
    void nothingToSumGivesPlusZero() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = Matrix.allocate(arena, DType.BF16, 40, 0);
            Matrix b = Matrix.allocate(arena, DType.BF16, 0, 5);
            Gemm gemm = gemm();
            Matrix c = normal(arena, DType.FP32, 40, 5, new Random(1));
            Scratch scratch = gemm.scratch(0, 5, arena);
            gemm.multiply(a, 0, 40, gemm.pack(b, false, arena), c, 0, scratch);
            assertSame(Matrix.allocate(arena, DType.FP32, 40, 5), c, "K = 0");
        }
    }

    /** Ranks that share a packed B fill it together. Bits of B are as they were, NaNs as well. */
    @Test
    void partsOfAPackedBMakeTheWhole() {
        Random random = new Random(32);
        try (Arena arena = Arena.ofConfined()) {
            for (boolean transposed : new boolean[] {false, true}) {
                long k = 601;
                long n = 140;
                Matrix b = normalB(arena, DType.BF16, k, n, transposed, random);
                byte[] bits = new byte[(int) b.elementBytes()];
                random.nextBytes(bits);
                b.data().copyFrom(MemorySegment.ofArray(bits));
                PackedB whole = gemm().pack(b, transposed, arena);
                for (int parts : new int[] {2, 9}) {
                    PackedB packed = gemm().packed(k, n, DType.BF16, arena.allocate(whole.bytes()));
                    for (int part = parts - 1; part >= 0; part--) {
                        packed.fill(b, transposed, part, parts);
                    }
                    assertEquals(-1, whole.panels().mismatch(packed.panels()), parts + " parts");
                }
                long last = b.offset(transposed ? n - 1 : k - 1, transposed ? k - 1 : n - 1);
                long panel = whole.panelOffset(512, k - 512, 128);
                long at = panel + Tiles.inPanel(DType.BF16, true, 32, k - 513, n - 129);
                assertEquals(
                        b.data().get(RowConverter.SHORT, last),
                        whole.panels().get(RowConverter.SHORT, at));
            }
        }
    }

    @Test
    void otherTypesAndDepthsAreRefused() {
        Gemm gemm = gemm();
        String name = gemm.name();
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = Matrix.allocate(arena, DType.FP32, 4, 6);
            Matrix b = Matrix.allocate(arena, DType.FP32, 6, 5);
            Matrix half = Matrix.allocate(arena, DType.BF16, 6, 5);
            Matrix c = Matrix.allocate(arena, DType.FP32, 4, 5);
            Scratch scratch = gemm.scratch(6, 5, arena);
            PackedB packed = gemm.pack(half, false, arena);
            refused(
                    "B is [6, 5] fp32: expected bf16, which this packed copy holds",
                    () -> gemm.pack(b, false, arena));
            refused(
                    "engine " + name + " multiplies bf16 only: A is [4, 6] fp32",
                    () -> gemm.multiply(a, 0, 4, packed, c, 0, scratch));
            Gemm scalar = new TiledGemm(new ScalarTiles());
            PackedB foreign = scalar.pack(half, false, arena);
            refused(
                    "B is packed as fp32 in panels of 4 columns and blocks of 512 rows, engine "
                            + name
                            + " reads bf16, 32 and %s: pack B with the engine that multiplies"
                                    .formatted(tiles().depth()),
                    () ->
                            gemm.multiply(
                                    Matrix.allocate(arena, DType.BF16, 4, 6),
                                    0,
                                    4,
                                    foreign,
                                    c,
                                    0,
                                    scratch));
        }
        refused(
                "depth 100 (property weft.gemm.depth): engine " + name + " takes multiples of 32",
                () -> new TiledGemm(tiles(), new Blocking(100, 32, 32, 1)));
    }

    private static void refused(String message, Executable call) {
        var e = assertThrows(IllegalArgumentException.class, call);
        assertEquals(message, e.getMessage());
    }
}
