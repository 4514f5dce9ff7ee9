package dev.weft.gemm;

import static dev.weft.gemm.GemmCases.assertSame;
import static dev.weft.gemm.GemmCases.cuts;
import static dev.weft.gemm.GemmCases.multiplyInParts;
import static dev.weft.gemm.GemmCases.normal;
import static dev.weft.gemm.GemmCases.normalB;
import static dev.weft.gemm.GemmCases.product;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.gemm.code.Tiles;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** What every form of tiles promises, and the fallback's own. */
class TiledGemmTest extends GemmContract {

    private static final Tiles VECTORS = new VectorTiles();

    /** The tiles under test; a subclass names others. */
    Tiles tiles() {
        return VECTORS;
    }

    @Override
    Gemm gemm() {
        return new TiledGemm(tiles());
    }

    @Override
    int panelCols() {
        return tiles().cols();
    }

    @Override
    int blockDepth() {
        return tiles().depth();
    }

    /**
     * A kernel that boxes its vectors, or never reaches the optimising compiler, is ten and more
     * times slower than plain Java; a sound one is faster, even on vectors of 128 bits.
     */
    @Test
    void isNotStuckOnASlowTier() {
        try (Arena arena = Arena.ofConfined()) {
            Random random = new Random(33);
            Matrix a = normal(arena, DType.FP32, 96, 512, random);
            Matrix b = normal(arena, DType.FP32, 512, 192, random);
            Matrix c = Matrix.allocate(arena, DType.FP32, 96, 192);
            long vector = Long.MAX_VALUE;
            long scalar = Long.MAX_VALUE;
            Gemm[] engines = {gemm(), new TiledGemm(new ScalarTiles())};
            PackedB[] packed = new PackedB[2];
            Scratch[] scratch = new Scratch[2];
            for (int i = 0; i < 2; i++) {
                packed[i] = engines[i].pack(b, false, arena);
                scratch[i] = engines[i].scratch(512, 192, arena);
            }
            for (int round = 0; round < 400 && vector > scalar; round++) {
                long start = System.nanoTime();
                engines[0].multiply(a, 0, 96, packed[0], c, 0, scratch[0]);
                long middle = System.nanoTime();
                engines[1].multiply(a, 0, 96, packed[1], c, 0, scratch[1]);
                vector = Math.min(vector, middle - start);
                scalar = Math.min(scalar, System.nanoTime() - middle);
            }
            assertTrue(vector <= scalar, vector + " ns, scalar engine " + scalar + " ns");
        }
    }

    /** Blocks so small that every loop around the kernel turns several times, with tails. */
    @Test
    void anyBlockingGivesTheSameBits() {
        Random random = new Random(31);
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = normal(arena, DType.FP32, 61, 1031, random);
            Matrix b = normal(arena, DType.FP32, 1031, 333, random);
            for (DType out : DType.UNSCALED) {
                Matrix expected =
                        product(new TiledGemm(new ScalarTiles()), arena, a, b, false, out);
                for (int rows : new int[] {1, 13, 40}) {
                    for (int cols : new int[] {1, 100, 200}) {
                        int depth = 512 - 11 * rows;
                        Blocking blocking = new Blocking(depth, rows, cols, rows);
                        Gemm gemm = new TiledGemm(tiles(), blocking);
                        Matrix c = product(gemm, arena, a, b, false, out);
                        assertSame(expected, c, blocking + ", " + out);
                        if (out == DType.FP32) {
                            long[] cuts = cuts(1031, 1, random);
                            multiplyInParts(gemm, a, 0, 61, b, false, cuts, 0, 333, false, c, 0);
                            assertSame(expected, c, blocking + ", " + Arrays.toString(cuts));
                        }
                    }
                }
            }
        }
    }

    /** Ranks that share a packed B fill it together: any number of parts gives the same B. */
    @Test
    void partsOfAPackedBMakeTheWhole() {
        Random random = new Random(32);
        try (Arena arena = Arena.ofConfined()) {
            for (boolean transposed : new boolean[] {false, true}) {
                Matrix b = normalB(arena, DType.FP16, 600, 5 * panelCols() + 1, transposed, random);
                PackedB whole = gemm().pack(b, transposed, arena);
                for (int parts : new int[] {2, 3, 9}) {
                    PackedB packed =
                            gemm().packed(
                                            whole.k(),
                                            whole.n(),
                                            b.dtype(),
                                            arena.allocate(whole.bytes()));
                    for (int part = parts - 1; part >= 0; part--) {
                        packed.fill(b, transposed, part, parts);
                    }
                    assertEquals(-1, whole.panels().mismatch(packed.panels()), parts + " parts");
                }
            }
        }
    }

    /** One panel, for which A may be read in place; B near and far, K cut anywhere. */
    @Test
    void fewColumnsGiveTheSameBits() {
        Random seeds = new Random(34);
        for (int i = 0; i < 60; i++) {
            long seed = seeds.nextLong();
            Random random = new Random(seed);
            int rows = 1 + random.nextInt(5 * tiles().rows());
            int k = 1 + random.nextInt(i % 2 == 0 ? 40 : 700);
            int n = 1 + random.nextInt(panelCols());
            Blocking blocking =
                    random.nextBoolean()
                            ? Blocking.of(tiles())
                            : new Blocking(1 + random.nextInt(200), 40, 100, 1);
            sameAsScalar(new TiledGemm(tiles(), blocking), rows, k, n, seed);
        }
    }

    /** Numbers of rows for which a B of 16 bits is widened in one way and in the other. */
    @Test
    void fewAndManyRowsGiveTheSameBits() {
        Random seeds = new Random(35);
        for (int i = 0; i < 40; i++) {
            long seed = seeds.nextLong();
            Random random = new Random(seed);
            int rows = 1 + random.nextInt(8 * tiles().rows());
            int k = 1 + random.nextInt(2 * blockDepth());
            int n = 1 + random.nextInt(6 * panelCols());
            sameAsScalar(gemm(), rows, k, n, seed);
        }
    }

    private static void sameAsScalar(Gemm gemm, int rows, int k, int n, long seed) {
        Random random = new Random(seed);
        DType typeA = DType.UNSCALED.get(random.nextInt(3));
        DType typeB = DType.UNSCALED.get(random.nextInt(3));
        DType out = DType.UNSCALED.get(random.nextInt(3));
        boolean transposed = random.nextBoolean();
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = normal(arena, typeA, rows, k, k + random.nextInt(3), random);
            Matrix b = normalB(arena, typeB, k, n, transposed, random);
            Matrix expected =
                    product(new TiledGemm(new ScalarTiles()), arena, a, b, transposed, out);
            String what =
                    "%s x %s x %s of %s, %s, %s, seed %s"
                            .formatted(rows, k, n, typeA, typeB, out, seed);
            Matrix c = product(gemm, arena, a, b, transposed, out);
            assertSame(expected, c, what);
            if (out == DType.FP32) {
                long[] cuts = cuts(k, 1, random);
                multiplyInParts(gemm, a, 0, rows, b, transposed, cuts, 0, n, false, c, 0);
                assertSame(expected, c, what + ", " + Arrays.toString(cuts));
            }
        }
    }

    @Test
    void agreesWithTheScalarEngineBitForBit() {
        for (long seed = 100; seed < 140; seed++) {
            Random random = new Random(seed);
            int rows = random.nextInt(150);
            int k = random.nextInt(1200);
            int n = random.nextInt(200);
            DType[] types = DType.values();
            DType out = types[random.nextInt(3)];
            boolean transposed = random.nextBoolean();
            try (Arena arena = Arena.ofConfined()) {
                Matrix a = normal(arena, types[random.nextInt(3)], rows, k, random);
                DType typeB = types[random.nextInt(3)];
                Matrix b = normalB(arena, typeB, k, n, transposed, random);
                Matrix scalar =
                        product(new TiledGemm(new ScalarTiles()), arena, a, b, transposed, out);
                Matrix vector = product(gemm(), arena, a, b, transposed, out);
                assertTrue(
                        scalar.bitwiseEquals(vector),
                        "seed " + seed + ": row " + scalar.firstDifferentRow(vector) + " differs");
            }
        }
    }
}
