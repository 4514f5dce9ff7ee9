package dev.weft.compat;

import static dev.weft.compat.HelionMatrices.normal;
import static dev.weft.compat.HelionMatrices.shard;
import static dev.weft.compat.HelionMatrices.unfused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Ranks;
import dev.weft.gemm.Deviation;
import dev.weft.gemm.Float64Oracle;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import dev.weft.trace.Timeline.Span;
import dev.weft.trace.Timeline.Track;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Gathered A and product of the Helion calls, and the timeline of a call. */
class HelionTest {

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

    /**
     * Every chunk is copied and every row multiplied in the spans, whose order is that of pulls.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theTimelineIsWhatTheThreadsDid(boolean tiles) {
        int ranks = 3;
        int splits = 2;
        Arena arena = Arena.ofAuto();
        Matrix a = normal(arena, DType.BF16, 12 * ranks, 16, 0);
        Matrix b = normal(arena, DType.BF16, 16, 9, 1);
        Helion.Config config = tiles ? new Helion.Config(5, 4, 8, 1, 1) : null;
        Ranks.run(
                ranks,
                fabric -> {
                    int rank = fabric.rank();
                    try (HelionShared<Matrix> shared = shard(fabric, a)) {
                        Timeline timeline =
                                Helion.allGatherMatmul(
                                                fabric, shared, b, false, null, null, null, splits,
                                                config)
                                        .timeline()
                                        .orElseThrow();
                        assertEquals(rank, timeline.rank());
                        List<Span> copies = timeline.tracks().getFirst().spans();
                        assertEquals("lane-0", timeline.tracks().getFirst().name());
                        List<Integer> sources = copies.stream().map(Span::source).toList();
                        int next = (rank + 1) % ranks;
                        int last = (rank + 2) % ranks;
                        assertEquals(List.of(next, next, last, last, rank, rank), sources);
                        assertEquals(
                                2L * splits * 6 * 16 * 2,
                                copies.stream().mapToLong(Span::bytes).sum());
                        List<Span> products =
                                timeline.tracks().stream()
                                        .skip(1)
                                        .flatMap(track -> track.spans().stream())
                                        .filter(span -> span.kind() == Kind.COMPUTE)
                                        .toList();
                        assertEquals(
                                12L * ranks * (tiles ? 3 : 1),
                                products.stream().mapToLong(Span::rows).sum());
                        for (Track track : timeline.tracks()) {
                            long at = 0;
                            for (Span span : track.spans()) {
                                assertTrue(span.startNs() >= at, track.toString());
                                assertTrue(span.endNs() >= span.startNs(), track.toString());
                                at = span.endNs();
                            }
                            assertTrue(timeline.elapsedNs() >= at, track.toString());
                        }
                    }
                });
    }

    @Test
    void anyTileAndAProductOfTheCallersGiveTheSameBits() {
        int ranks = 2;
        Arena arena = Arena.ofAuto();
        Matrix a = normal(arena, DType.BF16, 70 * ranks, 48, 0);
        for (boolean transposed : new boolean[] {false, true}) {
            Matrix b = normal(arena, DType.FP16, transposed ? 75 : 48, transposed ? 48 : 75, 1);
            Matrix golden = unfused(arena, a, b, transposed);
            Ranks.run(
                    ranks,
                    fabric -> {
                        Matrix wide = Matrix.allocate(arena, DType.FP32, a.rows(), 80);
                        Matrix c = wide.block(0, a.rows(), 3, 75);
                        try (HelionShared<Matrix> shared = shard(fabric, a)) {
                            for (int[] tile : new int[][] {{128, 256}, {1, 1}, {32, 20}, {7, 75}}) {
                                Helion.Config config =
                                        new Helion.Config(tile[0], tile[1], 64, 8, 3);
                                HelionResult<Matrix> result =
                                        Helion.allGatherMatmul(
                                                fabric,
                                                shared,
                                                b,
                                                transposed,
                                                null,
                                                c,
                                                null,
                                                5,
                                                config);
                                assertSame(c, result.c());
                                assertTrue(c.bitwiseEquals(golden), config.toString());
                                new NormalData(9, 9).fill(c);
                            }
                        }
                    });
        }
    }
}
