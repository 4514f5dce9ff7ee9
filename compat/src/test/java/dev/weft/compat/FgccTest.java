package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.compat.Fgcc.Path;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.fabric.transport.Ranks;
import dev.weft.plan.Chunks;
import dev.weft.plan.GatherView;
import dev.weft.plan.GatherView.Lane;
import dev.weft.plan.GatherView.Move;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class FgccTest {

    private static final FgccConfig TWO = FgccConfig.DEFAULT.withLnc(2);

    /** The source drops what does not fill a tile; here K, N and loc are off every grid. */
    @Test
    void sizesOffTheTileGridAreComputedRight() {
        Random random = new Random(11);
        for (int round = 0; round < 12; round++) {
            long seed = random.nextLong();
            Random sizes = new Random(seed);
            int ranks = 2 * sizes.nextInt(1, 5);
            int lnc = sizes.nextInt(1, 3);
            long m = (long) lnc * FgccLayout.channels(lnc, ranks) * sizes.nextInt(1, 40);
            FgccConfig config =
                    FgccConfig.DEFAULT.withLnc(lnc).withOnChipBytes(sizes.nextInt(1 << 18));
            DType aType = DType.values()[sizes.nextInt(3)];
            DType bType = DType.values()[sizes.nextInt(3)];
            boolean force = sizes.nextBoolean();
            Arena arena = Arena.ofAuto();
            FgccProblem problem =
                    FgccProblem.create(
                            arena,
                            ranks,
                            m,
                            sizes.nextInt(1, 200),
                            sizes.nextInt(ranks, 700),
                            aType,
                            bType,
                            seed);
            Ranks.run(
                    ranks,
                    fabric -> {
                        try (FgccResult<Matrix> result = problem.call(fabric, force, config)) {
                            problem.assertBitwise(result.product(), fabric.rank());
                            problem.assertClose(result.product(), fabric.rank());
                        }
                    });
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void replicaGroupsOfConsecutiveRanksGatherByThemselves(boolean hbm) {
        int ranks = 4;
        int groups = 3;
        Arena arena = Arena.ofAuto();
        List<FgccProblem> problems = new ArrayList<>();
        for (int g = 0; g < groups; g++) {
            problems.add(
                    FgccProblem.create(arena, ranks, 12, 33, 21, DType.BF16, DType.BF16, 100 + g));
        }
        Ranks.run(
                ranks * groups,
                fabric -> {
                    int member = fabric.rank() % ranks;
                    FgccProblem problem = problems.get(fabric.rank() / ranks);
                    try (Fgcc<Matrix> prepared =
                            Fgcc.prepare(
                                    fabric,
                                    12,
                                    33,
                                    DType.BF16,
                                    problem.rhs(member),
                                    ranks,
                                    groups,
                                    hbm,
                                    TWO)) {
                        for (int call = 0; call < 5; call++) {
                            FgccResult<Matrix> result = prepared.call(problem.lhs(member));
                            problem.assertBitwise(result.product(), member);
                        }
                    }
                });
    }

    /** Strided and of unlike length: each list's order is that of its rows and columns. */
    @Test
    void anyListsOfRanksGatherByThemselves() {
        ReplicaGroups groups = ReplicaGroups.parse("0,2,5,4/3,1");
        Arena arena = Arena.ofAuto();
        List<FgccProblem> problems =
                List.of(
                        FgccProblem.create(arena, 4, 12, 33, 21, DType.BF16, DType.BF16, 100),
                        FgccProblem.create(arena, 2, 12, 33, 21, DType.BF16, DType.BF16, 101));
        Ranks.run(
                6,
                fabric -> {
                    FgccProblem problem = problems.get(groups.groupOf(fabric.rank()));
                    int member = groups.with(fabric.rank()).indexOf(fabric.rank());
                    try (Fgcc<Matrix> prepared =
                            Fgcc.prepare(
                                    Place.HOST,
                                    fabric,
                                    12,
                                    33,
                                    DType.BF16,
                                    problem.rhs(member),
                                    groups,
                                    false,
                                    TWO)) {
                        for (int call = 0; call < 3; call++) {
                            FgccResult<Matrix> result = prepared.call(problem.lhs(member));
                            problem.assertBitwise(result.product(), member);
                        }
                    }
                });
    }

    /** They make the same calls and get a product without rows. */
    @Test
    void ranksInNoGroupTakeNoPart() {
        ReplicaGroups groups = ReplicaGroups.parse("3,1");
        Arena arena = Arena.ofAuto();
        FgccProblem problem = FgccProblem.create(arena, 2, 12, 33, 21, DType.BF16, DType.BF16, 100);
        Ranks.run(
                4,
                fabric -> {
                    boolean sitsOut = groups.groupOf(fabric.rank()) < 0;
                    int member = groups.with(fabric.rank()).indexOf(fabric.rank());
                    try (Fgcc<Matrix> prepared =
                            Fgcc.prepare(
                                    Place.HOST,
                                    fabric,
                                    12,
                                    33,
                                    DType.BF16,
                                    problem.rhs(member),
                                    groups,
                                    false,
                                    TWO.withSharedResult())) {
                        for (int call = 0; call < 3; call++) {
                            FgccResult<Matrix> result = prepared.call(problem.lhs(member));
                            if (sitsOut) {
                                assertEquals(0, result.product().rows());
                            } else {
                                problem.assertBitwise(result.product(), member);
                            }
                        }
                    }
                });
    }

    @Test
    void sixtyFourRanksInFourChannels() {
        Arena arena = Arena.ofAuto();
        FgccProblem problem = FgccProblem.create(arena, 64, 16, 40, 128, DType.BF16, DType.BF16, 5);
        Ranks.run(
                64,
                fabric -> {
                    int rank = fabric.rank();
                    try (FgccResult<Matrix> result = problem.call(fabric, false, TWO)) {
                        assertArrayEquals(new long[] {64, 2, 4, 2, 2}, result.shape());
                        problem.assertBitwise(result.product(), rank);
                        problem.assertClose(result.product(), rank);
                    }
                });
    }

    /** Per rank two places for its own shard and two ring buffers: 4 m K, whatever M is. */
    @ParameterizedTest
    @CsvSource({"4, false", "16, false", "32, false", "16, true"})
    void noGatheredAIsStoredAnywhere(int ranks, boolean hbm) {
        long m = 64;
        long k = 512;
        long shardBytes = Matrix.contiguousBytes(DType.BF16, m, k);
        Arena arena = Arena.ofAuto();
        Matrix rhs = Matrix.allocate(arena, DType.BF16, k, 8);
        Matrix lhs = Matrix.allocate(arena, DType.BF16, m, k);
        List<Long> reachable =
                Ranks.call(
                        ranks,
                        fabric -> {
                            try (Fgcc<Matrix> prepared =
                                    Fgcc.prepare(
                                            fabric, m, k, DType.BF16, rhs, ranks, 1, hbm, TWO)) {
                                assertEquals(hbm ? Path.HBM : Path.SBUF, prepared.call(lhs).path());
                                return prepared.operator().reachableBytes();
                            }
                        });
        for (long bytes : reachable) {
            assertTrue(bytes >= 4 * shardBytes, "got " + bytes);
            assertTrue(bytes <= 4 * shardBytes + (32 << 10), "got " + bytes);
        }
    }

    /** R - 1 permutes of L x C slices to the successor; own rows first, then rank - 1, - 2, ... */
    @ParameterizedTest
    @EnumSource(Path.class)
    void theStepsAreTheSources(Path path) {
        int ranks = 4;
        Arena arena = Arena.ofAuto();
        Matrix rhs = Matrix.allocate(arena, DType.BF16, 8, 8);
        Ranks.run(
                ranks,
                fabric -> {
                    try (Fgcc<Matrix> prepared = prepare(fabric, 64, rhs, path)) {
                        GatherView plan = FgccProblem.plan(prepared.operator());
                        assertEquals(2, plan.lanes().size());
                        for (Lane channel : plan.lanes()) {
                            List<Move> permutes = channel.moves();
                            int perStep = permutes.size() / (ranks - 1);
                            assertEquals(path == Path.SBUF, perStep == 2);
                            assertEquals((ranks - 1) * perStep, permutes.size());
                            for (int i = 0; i < permutes.size(); i++) {
                                int source = Math.floorMod(fabric.rank() - i / perStep, ranks);
                                assertEquals((fabric.rank() + 1) % ranks, permutes.get(i).to());
                                assertEquals(source, permutes.get(i).source());
                            }
                        }
                        List<Integer> sources = FgccProblem.sources(plan);
                        for (int step = 0; step < ranks; step++) {
                            assertEquals(
                                    Math.floorMod(fabric.rank() - step, ranks), sources.get(step));
                        }
                    }
                });
    }

    private static Fgcc<Matrix> prepare(Fabric fabric, long m, Matrix rhs, Path path) {
        boolean hbm = path == Path.HBM;
        return Fgcc.prepare(fabric, m, rhs.rows(), DType.BF16, rhs, fabric.size(), 1, hbm, TWO);
    }

    /** What ran, by its timeline: each channel moves its slices, each program multiplies its. */
    @ParameterizedTest
    @CsvSource({"4, SBUF", "4, HBM", "64, SBUF", "64, HBM"})
    void programsAndChannelsHaveTheirOwnSlices(int ranks, Path path) {
        int channels = FgccLayout.channels(2, ranks);
        long m = 8L * 2 * channels;
        FgccLayout layout = FgccLayout.of(path, ranks, 2, m, 8);
        Arena arena = Arena.ofAuto();
        FgccProblem problem =
                FgccProblem.create(arena, ranks, m, 24, 3L * ranks, DType.BF16, DType.BF16, 9);
        Ranks.run(
                ranks,
                fabric -> {
                    int rank = fabric.rank();
                    try (Fgcc<Matrix> prepared = prepare(fabric, m, problem.rhs(rank), path)) {
                        problem.assertBitwise(prepared.call(problem.lhs(rank)).product(), rank);
                        Timeline timeline = prepared.operator().lastResult().timeline();
                        for (int channel = 0; channel < channels; channel++) {
                            BitSet moved = rows(timeline, "lane-" + channel, Kind.TRANSFER);
                            BitSet owned = new BitSet();
                            for (int program = 0; program < 2; program++) {
                                addSlice(owned, layout, program, channel);
                            }
                            assertEquals(owned, moved, "channel " + channel);
                        }
                        for (int program = 0; program < 2; program++) {
                            String track = "compute-0 of program-" + program;
                            BitSet multiplied = rows(timeline, track, Kind.COMPUTE);
                            BitSet owned = new BitSet();
                            for (int channel = 0; channel < channels; channel++) {
                                addSlice(owned, layout, program, channel);
                            }
                            assertEquals(owned, multiplied, track);
                        }
                    }
                });
    }

    /** As in the source's shared HBM; no barrier lies between a call and the reading of it. */
    @ParameterizedTest
    @EnumSource(Path.class)
    void theResultIsReadableByTheGroupsOtherRanks(Path path) {
        int ranks = 4;
        Arena arena = Arena.ofAuto();
        FgccProblem problem =
                FgccProblem.create(arena, ranks, 16, 24, 22, DType.BF16, DType.BF16, 6);
        Ranks.run(
                ranks,
                fabric -> {
                    int rank = fabric.rank();
                    try (Fgcc<Matrix> prepared =
                            Fgcc.prepare(
                                    fabric,
                                    16,
                                    24,
                                    DType.BF16,
                                    problem.rhs(rank),
                                    ranks,
                                    1,
                                    path == Path.HBM,
                                    TWO.withSharedResult())) {
                        for (int call = 0; call < 5; call++) {
                            FgccResult<Matrix> result = prepared.call(problem.lhs(rank));
                            for (int peer = 0; peer < ranks; peer++) {
                                problem.assertBitwise(result.peer(peer), peer);
                            }
                        }
                    }
                });
    }

    /** What arrives is 2 x L x C slices, of which two of a program and channel fit the chip. */
    @Test
    void theBuffersOfTheOnChipPathFitTheChip() {
        int ranks = 4;
        long m = 64;
        long k = 512;
        long sliceBytes = Matrix.contiguousBytes(DType.BF16, m / 4, k);
        long blockOfB = Matrix.contiguousBytes(DType.BF16, k, 8);
        FgccConfig least = TWO.withOnChipBytes(2 * sliceBytes + 2 * blockOfB);
        Arena arena = Arena.ofAuto();
        Matrix rhs = Matrix.allocate(arena, DType.BF16, k, 8);
        assertEquals(Path.SBUF, least.path(ranks, m, k, 8, DType.BF16, DType.BF16, false));
        FgccConfig less = TWO.withOnChipBytes(least.onChipBytes() - 1);
        assertEquals(Path.HBM, less.path(ranks, m, k, 8, DType.BF16, DType.BF16, false));
        Ranks.run(
                ranks,
                fabric -> {
                    try (Fgcc<Matrix> prepared =
                            Fgcc.prepare(fabric, m, k, DType.BF16, rhs, ranks, 1, false, least)) {
                        Chunks chunks = prepared.operator().plan().chunks();
                        assertEquals(4, chunks.count(0));
                        assertEquals(m / 4, chunks.chunkRows(0));
                        long words = 32 << 10;
                        long arrivals =
                                prepared.operator().reachableBytes()
                                        - 2 * Matrix.contiguousBytes(DType.BF16, m, k);
                        assertTrue(arrivals >= 2 * 4 * sliceBytes);
                        assertTrue(arrivals <= 2 * 4 * sliceBytes + words, "got " + arrivals);
                    }
                });
    }

    /** Rows, of any shard, that the spans of a track are about. */
    private static BitSet rows(Timeline timeline, String name, Kind kind) {
        BitSet rows = new BitSet();
        timeline.tracks().stream()
                .filter(track -> track.name().equals(name))
                .flatMap(track -> track.spans().stream())
                .filter(span -> span.kind() == kind)
                .forEach(
                        span -> {
                            int first = (int) span.firstRow();
                            rows.set(first, first + (int) span.rows());
                        });
        return rows;
    }

    private static void addSlice(BitSet rows, FgccLayout layout, int program, int channel) {
        int first = (int) layout.firstRow(0, program, channel);
        rows.set(first, first + (int) layout.loc());
    }

    /** On the edge of the rule a rank with one column more would choose another path. */
    @Test
    void ranksWithDifferentNumbersOfColumnsAgreeOnOnePath() {
        int ranks = 2;
        FgccConfig config = new FgccConfig(1, 2 * 10 * 32 * 2 + 2 * 32 * 4 * 2);
        Arena arena = Arena.ofAuto();
        FgccProblem problem =
                FgccProblem.create(arena, ranks, 4, 32, 21, DType.BF16, DType.BF16, 2);
        assertEquals(Path.SBUF, Path.choose(config, 1, 4, 32, 10, DType.BF16, DType.BF16, false));
        assertEquals(Path.HBM, Path.choose(config, 1, 4, 32, 11, DType.BF16, DType.BF16, false));
        Ranks.run(
                ranks,
                fabric -> {
                    try (FgccResult<Matrix> result = problem.call(fabric, false, config)) {
                        assertEquals(Path.HBM, result.path());
                        problem.assertBitwise(result.product(), fabric.rank());
                    }
                });
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                // world | m | lhs K | rhs K | tp_degree | num_groups | message
                "4 | 8 | 16 | 15 | 4 | 1 | lhs [8, 16] bf16 and rhs [15, 6] bf16 differ in K:"
                        + " 16 and 15",
                "3 | 8 | 16 | 16 | 3 | 1 | tp_degree 3: expected an even number",
                "1 | 8 | 16 | 16 | 1 | 1 | tp_degree 1: expected an even number",
                "2 | 8 | 16 | 16 | 0 | 1 | tp_degree 0: expected an even number",
                "4 | 6 | 16 | 16 | 4 | 1 | M = 24 (m = 6 on each of R = 4 ranks) is not divisible"
                        + " by R*L*C = 4*2*2 = 16: expected m to be a multiple of 4",
                "4 | 8 | 16 | 16 | 4 | 2 | tp_degree 4 times num_groups 2 is 8: expected the 4"
                        + " ranks of the world",
                "4 | 8 | 16 | 16 | 4 | 0 | tp_degree 4 times num_groups 0 is 0: expected the 4"
                        + " ranks of the world"
            })
    void whatTheSourceRefusesIsRefusedWithTheNumbers(
            int size, long m, long k, long rhsRows, int tpDegree, int numGroups, String message) {
        Arena arena = Arena.ofAuto();
        Matrix lhs = Matrix.allocate(arena, DType.BF16, m, k);
        Matrix rhs = Matrix.allocate(arena, DType.BF16, rhsRows, 6);
        IllegalArgumentException refusal =
                assertThrows(
                        IllegalArgumentException.class,
                        () ->
                                Ranks.run(
                                        size,
                                        fabric ->
                                                Fgcc.allgatherComputeMatmul(
                                                        fabric, lhs, rhs, tpDegree, numGroups,
                                                        false, TWO)));
        assertEquals(message, refusal.getMessage());
    }

    @Test
    void ranksThatWantDifferentGroupsAreNamed() {
        Arena arena = Arena.ofAuto();
        Matrix lhs = Matrix.allocate(arena, DType.BF16, 8, 4);
        Matrix rhs = Matrix.allocate(arena, DType.BF16, 4, 4);
        String message =
                assertThrows(
                                IllegalArgumentException.class,
                                () ->
                                        Ranks.run(
                                                4,
                                                fabric -> {
                                                    int groups = fabric.rank() == 3 ? 2 : 1;
                                                    Fgcc.allgatherComputeMatmul(
                                                            fabric,
                                                            lhs,
                                                            rhs,
                                                            4 / groups,
                                                            groups,
                                                            false);
                                                }))
                        .getMessage();
        assertTrue(message.startsWith("num_groups is "), message);
        assertTrue(message.contains("rank 3"), message);
    }

    /** As in the source, where a result is in memory that all ranks share. */
    @Test
    void theResultOfASingleCallIsReadableByTheGroupsOtherRanks() {
        Arena arena = Arena.ofAuto();
        FgccProblem problem = FgccProblem.create(arena, 2, 5, 7, 9, DType.FP32, DType.BF16, 8);
        Ranks.run(
                4,
                fabric -> {
                    int member = fabric.rank() % 2;
                    Matrix lhs = problem.lhs(member);
                    Matrix rhs = problem.rhs(member);
                    try (FgccResult<Matrix> result =
                            Fgcc.allgatherComputeMatmul(fabric, lhs, rhs, 2, 2)) {
                        assertEquals(Path.SBUF, result.path());
                        problem.assertBitwise(result.product(), member);
                        for (int peer = 0; peer < 2; peer++) {
                            problem.assertBitwise(result.peer(peer), peer);
                        }
                        fabric.barrier();
                    }
                });
    }
}
