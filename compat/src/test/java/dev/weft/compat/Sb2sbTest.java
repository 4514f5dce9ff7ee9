package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.FabricException.PeerFailedException;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.fabric.World;
import dev.weft.fabric.transport.Ranks;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Span;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.BiConsumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

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

    private static ReplicaGroups all(int ranks) {
        return ReplicaGroups.consecutive(1, ranks);
    }

    /** What a group of these ranks must end with. */
    private static Matrix beside(
            Arena arena, DType dtype, long rows, long cols, List<Integer> members) {
        Matrix whole = Matrix.allocate(arena, dtype, rows, cols * members.size());
        for (int r = 0; r < members.size(); r++) {
            new NormalData(7, members.get(r)).fill(whole.block(0, rows, r * cols, cols));
        }
        return whole;
    }

    /** What a group of consecutive ranks must end with. */
    private static Matrix beside(
            Arena arena, DType dtype, long rows, long cols, int firstRank, int ranks) {
        List<Integer> members = IntStream.range(firstRank, firstRank + ranks).boxed().toList();
        return beside(arena, dtype, rows, cols, members);
    }

    private static void assertGives(Matrix expected, Sb2sb<Matrix> called) {
        try (called) {
            assertTrue(called.result().bitwiseEquals(expected));
        }
    }

    /** Three ranks of a group read each other's results of a single call. */
    private static void assertShared(Fabric fabric, Matrix expected, Sb2sb<Matrix> called) {
        try (called) {
            for (int r = 0; r < 3; r++) {
                assertTrue(called.peer(r).bitwiseEquals(expected), "once " + r);
            }
            fabric.barrier();
        }
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
                        assertGives(expected, Sb2sb.allgatherSb2sb(fabric, inp, all(ranks), ranks));
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
                        assertGives(
                                expected,
                                Sb2sb.allgatherSb2sbTiled(fabric, inp, all(ranks), ranks, lnc));
                    });
        }
    }

    /** Program p takes tiles p T to (p + 1) T - 1: seen in what a call did, by its rows. */
    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"DIRECT", "RING", "MESH_PUSH", "MESH_PULL"})
    void tilesAreDealtToProgramsInRuns(Algorithm algorithm) {
        Sb2sbConfig config = new Sb2sbConfig(algorithm, 1 << 20);
        Ranks.run(
                2,
                fabric -> {
                    try (Arena arena = Arena.ofShared();
                            Sb2sb<Matrix> gather =
                                    tiled(fabric, 768, 64, DType.BF16, all(2), 2, 3, config)) {
                        assertEquals(3, gather.programs());
                        Chunks tiles = gather.plan().chunks();
                        assertEquals(6, tiles.count(0));
                        assertEquals(128, tiles.chunkRows(0));
                        gather.call(input(arena, DType.BF16, 768, 64, fabric.rank()));
                        assertEquals(
                                List.of("0: 0 128 ", "1: 256 384 ", "2: 512 640 "),
                                tilesByProgram(gather.timeline(), 1 - fabric.rank(), algorithm));
                    }
                });
    }

    /** Of each program: the first rows of the tiles of {@code source} that it moved, in order. */
    private static List<String> tilesByProgram(Timeline timeline, int source, Algorithm algorithm) {
        boolean lanes = algorithm != Algorithm.DIRECT;
        Timeline.Kind kind = lanes ? Timeline.Kind.TRANSFER : Timeline.Kind.COMPUTE;
        // What a rank puts, it puts of its own rows.
        boolean puts = algorithm == Algorithm.RING || algorithm == Algorithm.MESH_PUSH;
        List<String> programs = new ArrayList<>();
        for (int p = 0; p < 3; p++) {
            String track = lanes ? "lane-" + p : "compute-0 of program-" + p;
            StringBuilder rows = new StringBuilder(p + ": ");
            timeline.tracks().stream()
                    .filter(each -> each.name().equals(track))
                    .flatMap(each -> each.spans().stream())
                    .filter(span -> span.kind() == kind)
                    .filter(span -> span.source() == (puts ? 1 - source : source))
                    .forEach(
                            span -> {
                                assertEquals(128, span.rows(), span.toString());
                                rows.append(span.firstRow()).append(' ');
                            });
            programs.add(rows.toString());
        }
        return programs;
    }

    /** One tile for two programs: the source runs it, and so do we; one of them has the tile. */
    @Test
    void oneTileIsOneProgramsWork() {
        Ranks.run(
                2,
                fabric -> {
                    try (Arena arena = Arena.ofShared();
                            Sb2sb<Matrix> gather =
                                    tiled(fabric, 96, 8, DType.FP32, all(2), 2, 2, RING)) {
                        Matrix out = gather.call(input(arena, DType.FP32, 96, 8, fabric.rank()));
                        assertEquals(1, gather.programs());
                        assertTrue(
                                out.bitwiseEquals(beside(arena, DType.FP32, 96, 8, List.of(0, 1))));
                    }
                });
    }

    /** Strided, of unlike length, in any order, and a rank in none, which gathers alone. */
    @ParameterizedTest
    @ValueSource(strings = {"0,2,4/1,3,5", "4,0/5,1,3", "5,4,3,2,1,0", "2", "0,5"})
    void anyListsOfRanksGather(String text) {
        ReplicaGroups groups = ReplicaGroups.parse(text);
        Ranks.run(
                6,
                fabric -> {
                    List<Integer> members = groups.with(fabric.rank());
                    int tp = members.size();
                    try (Arena arena = Arena.ofShared()) {
                        Matrix inp = input(arena, DType.BF16, 128, 6, fabric.rank());
                        Matrix expected = beside(arena, DType.BF16, 128, 6, members);
                        assertGives(expected, Sb2sb.allgatherSb2sb(fabric, inp, groups, tp));
                        Matrix large = input(arena, DType.BF16, 256, 6, fabric.rank());
                        assertGives(
                                beside(arena, DType.BF16, 256, 6, members),
                                Sb2sb.allgatherSb2sbTiled(fabric, large, groups, tp, 2));
                        Matrix below = Matrix.allocate(arena, DType.BF16, tp * 128L, 6);
                        for (int r = 0; r < tp; r++) {
                            below.rows(r * 128L, 128)
                                    .copyFrom(input(arena, DType.BF16, 128, 6, members.get(r)));
                        }
                        assertGives(below, Sb2sb.allgatherRows(fabric, inp, groups, tp));
                    }
                });
    }

    /** The output of every rank lies where the others can read it. */
    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"AUTO", "RING", "MESH_PUSH", "SEQUENTIAL"})
    void everyRankReadsTheOutputsOfItsGroup(Algorithm algorithm) {
        Sb2sbConfig config = new Sb2sbConfig(algorithm, 1 << 20);
        ReplicaGroups groups = ReplicaGroups.parse("2,0,1/5,3,4");
        Ranks.run(
                6,
                fabric -> {
                    try (Arena arena = Arena.ofShared();
                            Sb2sb<Matrix> gather =
                                    tiled(fabric, 256, 10, DType.FP16, groups, 3, 2, config)) {
                        Matrix inp = Matrix.allocate(arena, DType.FP16, 256, 10);
                        for (int call = 0; call < 5; call++) {
                            new NormalData(call, fabric.rank()).fill(inp);
                            Matrix own = gather.call(inp);
                            for (int r = 0; r < 3; r++) {
                                assertTrue(gather.peer(r).bitwiseEquals(own), "call " + call);
                            }
                        }
                        Matrix once = input(arena, DType.FP16, 128, 10, fabric.rank());
                        List<Integer> members = groups.with(fabric.rank());
                        Matrix expected = beside(arena, DType.FP16, 128, 10, members);
                        assertShared(
                                fabric, expected, Sb2sb.allgatherSb2sb(fabric, once, groups, 3));
                        assertShared(
                                fabric,
                                expected,
                                Sb2sb.allgatherSb2sbTiled(fabric, once, groups, 3));
                    }
                });
    }

    /** An input that lies in reachable memory is read in place. */
    @Test
    void anInputThatIsInItsPlaceIsNotCopied() {
        Ranks.run(
                3,
                fabric -> {
                    try (Arena arena = Arena.ofShared();
                            Sb2sb<Matrix> gather =
                                    untiled(
                                            fabric,
                                            8,
                                            16,
                                            DType.FP32,
                                            all(3),
                                            3,
                                            Sb2sbConfig.DEFAULT)) {
                        for (int call = 0; call < 4; call++) {
                            boolean inPlace = call != 1;
                            Matrix inp =
                                    inPlace
                                            ? gather.nextInput()
                                            : Matrix.allocate(arena, DType.FP32, 8, 16);
                            new NormalData(7, fabric.rank()).fill(inp);
                            Matrix out = gather.call(inp);
                            assertTrue(
                                    out.bitwiseEquals(
                                            beside(arena, DType.FP32, 8, 16, List.of(0, 1, 2))));
                            long staged =
                                    gather.timeline().tracks().stream()
                                            .flatMap(track -> track.spans().stream())
                                            .filter(s -> s.kind() == Timeline.Kind.STAGE)
                                            .count();
                            assertEquals(inPlace ? 0 : 1, staged);
                        }
                    }
                });
    }

    /** A peer's rows are copied once, straight to the result, however many programs share them. */
    @ParameterizedTest
    @CsvSource({"1, DIRECT", "2, DIRECT", "4, DIRECT", "1, MESH_PULL", "4, MESH_PULL"})
    void moreProgramsCopyNoMore(int lnc, Algorithm algorithm) {
        int ranks = 3;
        Timeline.Kind copying =
                algorithm == Algorithm.DIRECT ? Timeline.Kind.COMPUTE : Timeline.Kind.TRANSFER;
        Sb2sbConfig config = new Sb2sbConfig(algorithm, 1 << 20);
        Ranks.run(
                ranks,
                fabric -> {
                    try (Sb2sb<Matrix> gather =
                            tiled(fabric, 512, 16, DType.BF16, all(ranks), ranks, lnc, config)) {
                        assertEquals(lnc, gather.programs());
                        Matrix inp = gather.nextInput();
                        new NormalData(7, fabric.rank()).fill(inp);
                        gather.call(inp);
                        List<Span> spans =
                                gather.timeline().tracks().stream()
                                        .flatMap(track -> track.spans().stream())
                                        .toList();
                        assertTrue(spans.stream().noneMatch(s -> s.kind() == Timeline.Kind.STAGE));
                        for (int distance = 1; distance < ranks; distance++) {
                            int source = (fabric.rank() + distance) % ranks;
                            long copied =
                                    spans.stream()
                                            .filter(span -> span.kind() == copying)
                                            .filter(span -> span.source() == source)
                                            .mapToLong(Span::rows)
                                            .sum();
                            assertEquals(512, copied, "rows of rank " + source);
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
                        try (Sb2sb<Matrix> gather =
                                tiled(
                                        fabric,
                                        256,
                                        33,
                                        DType.FP16,
                                        ReplicaGroups.consecutive(2, 3),
                                        3,
                                        2,
                                        config)) {
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
                            Sb2sb.allgatherSb2sb(
                                    fabric, inp, ReplicaGroups.consecutive(groups, tp), tp, out);
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
    @EnumSource(
            value = DType.class,
            names = {"FP32", "FP16", "BF16"})
    void rowsBelowEachOtherAlsoWhereRanksOwnUnlikeMany(DType dtype) {
        long[] rows = {5, 0, 17};
        ReplicaGroups groups = ReplicaGroups.consecutive(2, 3);
        Ranks.run(
                6,
                fabric -> {
                    int member = fabric.rank() % 3;
                    try (Arena arena = Arena.ofConfined()) {
                        Matrix inp = input(arena, dtype, rows[member], 19, fabric.rank());
                        Matrix mine = Matrix.allocate(arena, dtype, 22, 19);
                        Sb2sb.allgatherRows(fabric, inp, groups, 3, mine);
                        Shards shards = Shards.of(rows);
                        for (int r = 0; r < 3; r++) {
                            Matrix expected =
                                    input(arena, dtype, rows[r], 19, fabric.rank() / 3 * 3 + r);
                            Matrix there = mine.rows(shards.firstRow(r), rows[r]);
                            assertTrue(there.bitwiseEquals(expected), "rows of rank " + r);
                        }
                        assertGives(mine, Sb2sb.allgatherRows(fabric, inp, groups, 3));
                    }
                });
    }

    static Stream<Arguments> refusals() {
        return Stream.of(
                refusal(
                        "H is 129: expected at most 128 rows",
                        (f, a) -> Sb2sb.allgatherSb2sb(f, zeros(a, 129, 4), all(2), 2)),
                refusal(
                        "is 25166848 bytes: expected at most the on-chip capacity of 25165824",
                        (f, a) -> Sb2sb.allgatherSb2sb(f, zeros(a, 128, 98308), all(2), 2)),
                refusal(
                        "is 4096 bytes: expected at most the on-chip capacity of 4095",
                        (f, a) ->
                                untiled(
                                        f,
                                        64,
                                        32,
                                        DType.BF16,
                                        all(2),
                                        2,
                                        new Sb2sbConfig(Algorithm.AUTO, 4095))),
                refusal(
                        "M is 129: expected at most 128 rows or a multiple of 128",
                        (f, a) -> Sb2sb.allgatherSb2sbTiled(f, zeros(a, 129, 4), all(2), 2, 1)),
                refusal(
                        "3 tiles of 128 rows (M is 384) for 2 LNC programs",
                        (f, a) -> Sb2sb.allgatherSb2sbTiled(f, zeros(a, 384, 4), all(2), 2, 2)),
                refusal(
                        "for 0 LNC programs",
                        (f, a) -> Sb2sb.allgatherSb2sbTiled(f, zeros(a, 64, 4), all(2), 2, 0)),
                refusal(
                        "rank 2 in replica groups 0,1/2,3: expected ranks 0 to 1",
                        (f, a) ->
                                Sb2sb.allgatherSb2sb(
                                        f, zeros(a, 4, 4), ReplicaGroups.consecutive(2, 2), 2)),
                refusal(
                        "rank 1 is twice in replica groups 0,1/1",
                        (f, a) ->
                                Sb2sb.allgatherSb2sb(
                                        f, zeros(a, 4, 4), ReplicaGroups.parse("0,1/1"), 2)),
                refusal(
                        "is in a replica group of 2 ranks (0,1): expected the ranks of its group",
                        (f, a) -> Sb2sb.allgatherRows(f, zeros(a, 4, 4), all(2), 8)),
                refusal(
                        "an input of [4, 0]",
                        (f, a) -> Sb2sb.allgatherSb2sb(f, zeros(a, 4, 0), all(2), 2)),
                refusal(
                        "out is [4, 7] bf16: expected [4, 8] bf16",
                        (f, a) ->
                                Sb2sb.allgatherSb2sb(
                                        f, zeros(a, 4, 4), all(2), 2, zeros(a, 4, 7))));
    }

    private static Sb2sb<Matrix> untiled(
            Fabric world,
            long h,
            long w,
            DType type,
            ReplicaGroups groups,
            int tp,
            Sb2sbConfig config) {
        return Sb2sb.prepare(
                Place.HOST, Sb2sbLayout.UNTILED, world, h, w, type, groups, tp, 1, config);
    }

    private static Sb2sb<Matrix> tiled(
            Fabric world,
            long m,
            long k,
            DType type,
            ReplicaGroups groups,
            int tp,
            int lnc,
            Sb2sbConfig config) {
        return Sb2sb.prepare(
                Place.HOST, Sb2sbLayout.TILED, world, m, k, type, groups, tp, lnc, config);
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
                    IllegalArgumentException.class,
                    () -> Sb2sb.allgatherSb2sb(null, inp, all(1), 1));
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
                                        () -> Sb2sb.allgatherSb2sb(fabric, inp, all(2), 2));
                        assertTrue(end.getMessage().contains("H is 200"), end.getMessage());
                        if (fabric.rank() == 0) {
                            assertEquals(
                                    1, assertInstanceOf(PeerFailedException.class, end).peer());
                        }
                    }
                });
    }
}
