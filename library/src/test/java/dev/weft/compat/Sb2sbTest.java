package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.PeerFailedException;
import dev.weft.fabric.World;
import dev.weft.fabric.transport.Ranks;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.util.Random;
import java.util.function.BiConsumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** The SBUF-to-SBUF gathers: the original's shapes, byte for byte, and its refusals. */
class Sb2sbTest {

    private static final Sb2sbConfig RING =
            new Sb2sbConfig(Algorithm.RING, Sb2sbConfig.DEFAULT.onChipBytes());

    /** The input of a world's rank; every rank has other data. */
    private static Matrix input(Arena arena, DType dtype, long rows, long cols, int rank) {
        Matrix input = Matrix.allocate(arena, dtype, rows, cols);
        new NormalData(7, rank).fill(input);
        return input;
    }

    /** What a group of consecutive ranks must end with. */
    private static Matrix beside(
            Arena arena, DType dtype, long rows, long cols, int firstRank, int ranks) {
        Matrix whole = Matrix.allocate(arena, dtype, rows, cols * ranks);
        for (int r = 0; r < ranks; r++) {
            new NormalData(7, firstRank + r).fill(whole.block(0, rows, r * cols, cols));
        }
        return whole;
    }

    @ParameterizedTest
    @CsvSource({
        "BF16, 128, 512, 8",
        "BF16, 64, 1024, 8",
        "BF16, 128, 2048, 8",
        "BF16, 96, 512, 16",
        "BF16, 128, 256, 64",
        "BF16, 128, 256, 32",
        "BF16, 128, 384, 16",
        "FP32, 128, 512, 8",
        "FP16, 64, 1024, 8"
    })
    void theOriginalsShapes(DType dtype, long h, long w, int ranks) {
        try (World world = World.threads(ranks);
                Arena arena = Arena.ofShared()) {
            Matrix expected = beside(arena, dtype, h, w, 0, ranks);
            world.run(
                    fabric -> {
                        Matrix inp = input(arena, dtype, h, w, fabric.rank());
                        Matrix out = Sb2sb.allgatherSb2sb(fabric, inp, 1, ranks);
                        assertTrue(out.bitwiseEquals(expected), "rank " + fabric.rank());
                    });
        }
    }

    @ParameterizedTest
    @CsvSource({
        "BF16, 128, 512, 4, 2",
        "BF16, 64, 1024, 4, 2",
        "BF16, 256, 512, 8, 1",
        "BF16, 256, 512, 4, 2",
        "BF16, 256, 512, 8, 2",
        "BF16, 512, 1024, 8, 1",
        "BF16, 512, 1024, 8, 2",
        "FP32, 256, 512, 8, 1",
        "FP16, 512, 1024, 4, 2"
    })
    void theOriginalsTiledShapes(DType dtype, long m, long k, int ranks, int lnc) {
        try (World world = World.threads(ranks);
                Arena arena = Arena.ofShared()) {
            Matrix expected = beside(arena, dtype, m, k, 0, ranks);
            world.run(
                    fabric -> {
                        Matrix inp = input(arena, dtype, m, k, fabric.rank());
                        Matrix out = Sb2sb.allgatherSb2sbTiled(fabric, inp, 1, ranks, lnc);
                        assertTrue(out.bitwiseEquals(expected), "rank " + fabric.rank());
                    });
        }
    }

    /** Program p takes the p-th run of tiles, and a tile is a chunk. */
    @Test
    void tilesAreDealtToProgramsInRuns() {
        Ranks.run(
                2,
                fabric -> {
                    try (Sb2sb gather = Sb2sb.tiled(fabric, 768, 64, DType.BF16, 1, 2, 3, RING)) {
                        assertEquals(3, gather.programs());
                        for (int p = 0; p < 3; p++) {
                            Chunks tiles = gather.plan(p).chunks();
                            assertEquals(2, tiles.count(0), "tiles of program " + p);
                            assertEquals(128, tiles.chunkRows(0));
                            assertEquals("ring", gather.plan(p).name());
                        }
                    }
                });
    }

    @ParameterizedTest
    @EnumSource(Algorithm.class)
    void everyAlgorithmAndCallAfterCall(Algorithm algorithm) {
        Sb2sbConfig config = new Sb2sbConfig(algorithm, 1 << 20);
        try (World world = World.threads(6);
                Arena arena = Arena.ofShared()) {
            world.run(
                    fabric -> {
                        Matrix inp = Matrix.allocate(arena, DType.FP16, 256, 33);
                        try (Sb2sb gather =
                                Sb2sb.tiled(fabric, 256, 33, DType.FP16, 2, 3, 2, config)) {
                            for (int call = 0; call < 4; call++) {
                                new NormalData(call, fabric.rank()).fill(inp);
                                Matrix out = gather.call(inp);
                                int first = fabric.rank() / 3 * 3;
                                for (int r = 0; r < 3; r++) {
                                    Matrix expected = Matrix.allocate(arena, DType.FP16, 256, 33);
                                    new NormalData(call, first + r).fill(expected);
                                    assertTrue(
                                            out.block(0, 256, r * 33, 33).bitwiseEquals(expected),
                                            algorithm + ", call " + call + ", source " + r);
                                }
                            }
                        }
                    });
        }
    }

    @Test
    void randomShapesGroupsAndPlacesOfTheCaller() {
        long seed = 20260101;
        Random random = new Random(seed);
        for (int round = 0; round < 12; round++) {
            int groups = 1 + random.nextInt(2);
            int tp = 1 + random.nextInt(4);
            long h = 1 + random.nextInt(128);
            long w = 1 + random.nextInt(70);
            DType dtype = DType.values()[random.nextInt(3)];
            String which = "seed " + seed + " round " + round;
            Ranks.run(
                    groups * tp,
                    fabric -> {
                        try (Arena arena = Arena.ofConfined()) {
                            Matrix inp = input(arena, dtype, h, w, fabric.rank());
                            Matrix wide = Matrix.allocate(arena, dtype, h + 2, w * tp + 5);
                            Matrix out = wide.block(1, h, 3, w * tp);
                            Sb2sb.allgatherSb2sb(fabric, inp, groups, tp, out);
                            int first = fabric.rank() / tp * tp;
                            assertTrue(
                                    out.bitwiseEquals(beside(arena, dtype, h, w, first, tp)),
                                    which);
                            assertEquals(0f, wide.get(0, 3), which);
                            assertEquals(0f, wide.get(1, 2), which);
                            assertEquals(0f, wide.get(h + 1, 3), which);
                        }
                    });
        }
    }

    @ParameterizedTest
    @EnumSource(DType.class)
    void rowsBelowEachOtherAlsoWhereRanksOwnUnlikeMany(DType dtype) {
        long[] rows = {5, 0, 17};
        Ranks.run(
                6,
                fabric -> {
                    int member = fabric.rank() % 3;
                    try (Arena arena = Arena.ofConfined()) {
                        Matrix inp = input(arena, dtype, rows[member], 19, fabric.rank());
                        Matrix out = Sb2sb.allgatherRows(fabric, inp, 2, 3);
                        Matrix mine = Matrix.allocate(arena, dtype, 22, 19);
                        Sb2sb.allgatherRows(fabric, inp, 2, 3, mine);
                        Shards shards = Shards.of(rows);
                        for (int r = 0; r < 3; r++) {
                            Matrix expected =
                                    input(arena, dtype, rows[r], 19, fabric.rank() / 3 * 3 + r);
                            Matrix there = out.rows(shards.firstRow(r), rows[r]);
                            assertTrue(there.bitwiseEquals(expected), "rows of rank " + r);
                        }
                        assertTrue(mine.bitwiseEquals(out));
                    }
                });
    }

    static Stream<Arguments> refusals() {
        return Stream.of(
                refusal(
                        "H is 129: expected at most 128 rows",
                        (f, a) -> Sb2sb.allgatherSb2sb(f, zeros(a, 129, 4), 1, 2)),
                refusal(
                        "is 25166848 bytes: expected at most the on-chip capacity of 25165824",
                        (f, a) -> Sb2sb.allgatherSb2sb(f, zeros(a, 128, 98308), 1, 2)),
                refusal(
                        "is 4096 bytes: expected at most the on-chip capacity of 4095",
                        (f, a) ->
                                Sb2sb.untiled(
                                        f,
                                        64,
                                        32,
                                        DType.BF16,
                                        1,
                                        2,
                                        new Sb2sbConfig(Algorithm.AUTO, 4095))),
                refusal(
                        "M is 129: expected at most 128 rows or a multiple of 128",
                        (f, a) -> Sb2sb.allgatherSb2sbTiled(f, zeros(a, 129, 4), 1, 2, 1)),
                refusal(
                        "3 tiles of 128 rows (M is 384) for 2 LNC programs",
                        (f, a) -> Sb2sb.allgatherSb2sbTiled(f, zeros(a, 384, 4), 1, 2, 2)),
                refusal(
                        "for 0 LNC programs",
                        (f, a) -> Sb2sb.allgatherSb2sbTiled(f, zeros(a, 64, 4), 1, 2, 0)),
                refusal(
                        "3 replica groups of 2 ranks in a world of 2",
                        (f, a) -> Sb2sb.allgatherSb2sb(f, zeros(a, 4, 4), 3, 2)),
                refusal(
                        "1 replica groups of 8 ranks in a world of 2",
                        (f, a) -> Sb2sb.allgatherRows(f, zeros(a, 4, 4), 1, 8)),
                refusal(
                        "an input of [4, 0]",
                        (f, a) -> Sb2sb.allgatherSb2sb(f, zeros(a, 4, 0), 1, 2)),
                refusal(
                        "out is [4, 7] bf16: expected [4, 8] bf16",
                        (f, a) -> Sb2sb.allgatherSb2sb(f, zeros(a, 4, 4), 1, 2, zeros(a, 4, 7))));
    }

    private static Matrix zeros(Arena arena, long rows, long cols) {
        return Matrix.allocate(arena, DType.BF16, rows, cols);
    }

    private static Arguments refusal(String says, BiConsumer<Fabric, Arena> call) {
        return Arguments.of(says, call);
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("refusals")
    void whatCannotBeIsRefusedWithItsNumbers(String says, BiConsumer<Fabric, Arena> call) {
        Ranks.run(
                2,
                fabric -> {
                    try (Arena arena = Arena.ofConfined()) {
                        IllegalArgumentException refusal =
                                assertThrows(
                                        IllegalArgumentException.class,
                                        () -> call.accept(fabric, arena));
                        assertTrue(refusal.getMessage().contains(says), refusal.getMessage());
                    }
                });
    }

    @Test
    void noWorldIsRefused() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix inp = zeros(arena, 1, 1);
            assertThrows(
                    IllegalArgumentException.class, () -> Sb2sb.allgatherSb2sb(null, inp, 1, 1));
        }
    }

    @Test
    void aRefusalOnOneRankEndsTheCallOnTheOther() {
        Ranks.run(
                2,
                fabric -> {
                    try (Arena arena = Arena.ofConfined()) {
                        Matrix inp = zeros(arena, fabric.rank() == 1 ? 200 : 100, 4);
                        RuntimeException end =
                                assertThrows(
                                        RuntimeException.class,
                                        () -> Sb2sb.allgatherSb2sb(fabric, inp, 1, 2));
                        assertTrue(end.getMessage().contains("H is 200"), end.getMessage());
                        if (fabric.rank() == 0) {
                            assertEquals(
                                    1, assertInstanceOf(PeerFailedException.class, end).peer());
                        }
                    }
                });
    }
}
