package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Ranks;
import dev.weft.gemm.Deviation;
import dev.weft.gemm.Float64Oracle;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.PackedB;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Gathered A and product of the Helion calls, and what may be used again. */
class HelionTest {

    /** One single-threaded product of the whole A. */
    private static Matrix unfused(Arena arena, Matrix a, Matrix b, boolean transposed) {
        Gemm gemm = Gemms.auto();
        PackedB packed = gemm.pack(b, transposed, arena);
        DType type = DType.promote(a.dtype(), b.dtype());
        Matrix c = Matrix.allocate(arena, type, a.rows(), packed.n());
        gemm.multiply(a, 0, a.rows(), packed, c, 0, gemm.scratch(a.cols(), packed.n(), arena));
        return c;
    }

    private static Matrix normal(Arena arena, DType dtype, long rows, long cols, long stream) {
        Matrix matrix = Matrix.allocate(arena, dtype, rows, cols);
        new NormalData(3, stream).fill(matrix);
        return matrix;
    }

    private static HelionShared<Matrix> shard(Fabric fabric, Matrix a) {
        long rows = a.rows() / fabric.size();
        HelionShared<Matrix> shared = Helion.empty(fabric, rows, a.cols(), a.dtype());
        shared.local().copyFrom(a.rows(fabric.rank() * rows, rows));
        return shared;
    }

    @ParameterizedTest
    @ValueSource(ints = {4, 8})
    void theOriginalsTestInSmall(int ranks) {
        Arena arena = Arena.ofAuto();
        Matrix a = normal(arena, DType.BF16, 256, 512, 0);
        // Stored as [N, K]: the original's B is a transposed view of such a one.
        Matrix b = normal(arena, DType.BF16, 208, 512, 1);
        Matrix golden = unfused(arena, a, b, true);
        Ranks.run(
                ranks,
                fabric -> {
                    try (HelionShared<Matrix> shared = shard(fabric, a)) {
                        HelionResult<Matrix> result =
                                Helion.allGatherMatmul(fabric, shared, b, true, null, null, 1);
                        assertTrue(result.aOut().bitwiseEquals(a), "gathered A");
                        assertTrue(result.c().bitwiseEquals(golden), "product");
                        Deviation deviation =
                                new Float64Oracle(a, b, true).check(result.c(), 0, 31, 32, 255);
                        assertTrue(deviation.withinBound(), deviation.describe());
                    }
                });
    }

    @Test
    void randomShapesTypesSplitsAndLayouts() {
        long seed = 20260102;
        Random random = new Random(seed);
        for (int round = 0; round < 25; round++) {
            int ranks = 1 + random.nextInt(5);
            long rows = random.nextInt(8) == 0 ? 0 : 1 + random.nextInt(150);
            long k = 1 + random.nextInt(60);
            long n = 1 + random.nextInt(60);
            DType aType = DType.values()[random.nextInt(3)];
            DType bType = DType.values()[random.nextInt(3)];
            boolean transposed = random.nextBoolean();
            int splits = divisor(random, rows * k);
            String which = "seed " + seed + " round " + round + " splits " + splits;
            Arena arena = Arena.ofAuto();
            Matrix a = normal(arena, aType, rows * ranks, k, 0);
            Matrix b = normal(arena, bType, transposed ? n : k, transposed ? k : n, 1);
            Matrix golden = unfused(arena, a, b, transposed);
            Ranks.run(
                    ranks,
                    fabric -> {
                        try (HelionShared<Matrix> shared = shard(fabric, a)) {
                            HelionResult<Matrix> result =
                                    Helion.allGatherMatmul(
                                            fabric, shared, b, transposed, null, null, splits);
                            assertTrue(result.aOut().bitwiseEquals(a), which);
                            assertEquals(DType.promote(aType, bType), result.c().dtype());
                            assertTrue(result.c().bitwiseEquals(golden), which);
                        }
                    });
        }
    }

    /** Splits that end inside of rows too. */
    private static int divisor(Random random, long elements) {
        int splits = 1 + random.nextInt(12);
        while (elements % splits != 0) {
            splits--;
        }
        return splits;
    }

    @Test
    void gatheredAProgressAndShardServeCallAfterCall() {
        int ranks = 3;
        int calls = 5;
        Arena arena = Arena.ofAuto();
        Matrix b = normal(arena, DType.FP16, 24, 10, 1);
        Matrix[] as = new Matrix[calls];
        Matrix[] goldens = new Matrix[calls];
        for (int call = 0; call < calls; call++) {
            as[call] = normal(arena, DType.FP16, 8 * ranks, 24, 10 + call);
            goldens[call] = unfused(arena, as[call], b, false);
        }
        Ranks.run(
                ranks,
                fabric -> {
                    Matrix aOut = Matrix.allocate(arena, DType.FP16, 8 * ranks, 24);
                    try (HelionShared<Matrix> shared = Helion.empty(fabric, 8, 24, DType.FP16);
                            HelionProgress progress = Helion.progress(fabric, 4)) {
                        assertEquals(4 * ranks, progress.size());
                        Matrix before = null;
                        for (int call = 0; call < calls; call++) {
                            shared.local().copyFrom(as[call].rows(fabric.rank() * 8L, 8));
                            // Other splits in every call: fewer than it has room for are fine.
                            int splits = 1 + call % 4;
                            splits = splits == 3 ? 4 : splits;
                            HelionResult<Matrix> result =
                                    Helion.allGatherMatmul(
                                            fabric, shared, b, false, aOut, progress, splits);
                            assertSame(aOut, result.aOut());
                            assertNotSame(before, result.c());
                            before = result.c();
                            assertTrue(aOut.bitwiseEquals(as[call]), "call " + call);
                            assertTrue(result.c().bitwiseEquals(goldens[call]), "call " + call);
                            assertAllReady(progress, ranks, splits);
                        }
                    }
                });
    }

    private static void assertAllReady(HelionProgress progress, int ranks, int splits) {
        assertEquals(splits, progress.splitsPerRank());
        for (int source = 0; source < ranks; source++) {
            for (int split = 0; split < splits; split++) {
                assertTrue(progress.isReady(source, split), source + " " + split);
            }
        }
    }

    @Test
    void aPlainMatrixIsStaged() {
        Arena arena = Arena.ofAuto();
        Matrix a = normal(arena, DType.FP32, 10, 7, 0);
        Matrix b = normal(arena, DType.BF16, 7, 5, 1);
        Matrix golden = unfused(arena, a, b, false);
        Ranks.run(
                2,
                fabric -> {
                    Matrix mine = a.rows(fabric.rank() * 5L, 5);
                    HelionResult<Matrix> result =
                            Helion.allGatherMatmul(fabric, mine, b, false, null, null, 5);
                    assertTrue(result.aOut().bitwiseEquals(a));
                    assertTrue(result.c().bitwiseEquals(golden));
                });
    }

    /** Both halves on their own: first the gather to its end, then the product. */
    @Test
    void theCopyEngineAndTheProductStandAlone() {
        int ranks = 3;
        Arena arena = Arena.ofAuto();
        Matrix a = normal(arena, DType.BF16, 12 * ranks, 16, 0);
        Matrix b = normal(arena, DType.BF16, 16, 9, 1);
        Matrix golden = unfused(arena, a, b, false);
        Ranks.run(
                ranks,
                fabric -> {
                    try (HelionShared<Matrix> shared = shard(fabric, a);
                            HelionProgress progress = Helion.progress(fabric, 3)) {
                        Matrix out = Matrix.allocate(arena, DType.BF16, a.rows(), 16);
                        HelionGather gather =
                                Helion.copyEngineAllGatherWithProgress(out, shared, progress, 3);
                        gather.await();
                        assertTrue(out.bitwiseEquals(a));
                        assertAllReady(progress, ranks, 3);
                        Matrix c =
                                Helion.matmulWithProgress(
                                        out, shared, b, false, progress, 3, fabric.rank());
                        assertTrue(c.bitwiseEquals(golden));
                        progress.begin(2);
                        assertFalse(progress.isReady(0, 0), "a new round starts with none");
                    }
                });
    }

    @Test
    void theSuccessorIsPulledFirstAndTheOwnShardLast() {
        int[] sources = new int[4];
        for (int step = 0; step < 4; step++) {
            sources[step] = HelionHostGather.source(2, step, 4);
        }
        assertEquals("[3, 0, 1, 2]", Arrays.toString(sources));
    }
}
