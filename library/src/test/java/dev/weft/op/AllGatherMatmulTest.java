package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Ranks;
import dev.weft.gemm.Gemms;
import dev.weft.op.Operator.PendingCall;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class AllGatherMatmulTest {

    private static final Algorithm[] REAL =
            Stream.of(Algorithm.values())
                    .filter(a -> a != Algorithm.AUTO)
                    .toArray(Algorithm[]::new);

    /**
     * Every algorithm, dtype and layout, 1 to 8 ranks, odd shapes, uneven and empty shards; auto,
     * which takes a second to choose one of the others, with some of the ranks.
     */
    @ParameterizedTest
    @EnumSource(Algorithm.class)
    void productIsBitwiseTheUnfusedOneAndGatheredAIsExact(Algorithm algorithm) {
        Random random = new Random(42);
        int step = algorithm == Algorithm.AUTO ? 3 : 1;
        for (int ranks = 1; ranks <= 8; ranks += step) {
            for (DType aType : DType.UNSCALED) {
                DType bType = DType.values()[random.nextInt(3)];
                DType out = DType.values()[random.nextInt(3)];
                check(algorithm, ranks, aType, bType, out, random.nextBoolean(), random.nextLong());
            }
        }
    }

    private static void check(
            Algorithm algorithm,
            int ranks,
            DType aType,
            DType bType,
            DType out,
            boolean transposed,
            long seed) {
        Random random = new Random(seed);
        long[] rows = random.longs(ranks, 0, 90).map(r -> r % 4 == 0 ? 0 : r).toArray();
        Shards shards = Shards.of(rows);
        String what =
                "%s %d ranks, shards %s, %s x %s -> %s, transposed %s, seed %d"
                        .formatted(
                                algorithm.label(),
                                ranks,
                                shards,
                                aType,
                                bType,
                                out,
                                transposed,
                                seed);
        Arena arena = Arena.ofAuto();
        Problem problem =
                Problem.create(
                        arena,
                        shards,
                        1 + random.nextInt(130),
                        1 + random.nextInt(70),
                        aType,
                        bType,
                        out,
                        transposed,
                        seed);
        problem.requireWithinFloat64Bound();
        int chunkRows = 1 + random.nextInt(40);
        int comm = 1 + random.nextInt(3);
        int parts = random.nextInt(4);
        Ranks.run(
                ranks,
                fabric -> {
                    AllGatherMatmulBuilder builder =
                            problem.on(fabric)
                                    .algorithm(algorithm)
                                    .commWorkers(comm)
                                    .computeWorkers(2)
                                    .columnParts(parts)
                                    .keepGathered();
                    if (seed % 2 == 0) {
                        builder.chunkRows(chunkRows);
                    }
                    if (seed % 7 < 3) {
                        builder.pinWorkers();
                    }
                    if (seed % 5 == 0) {
                        builder.waitForSummary();
                    }
                    if (seed % 3 == 0) {
                        builder.chunkCols(17);
                    }
                    try (AllGatherMatmul op = builder.prepare()) {
                        for (int call = 0; call < 3; call++) {
                            Result<Matrix> result = op.call(problem.shard(fabric.rank()));
                            assertEquals(
                                    -1,
                                    problem.unfused().firstDifferentRow(result.product()),
                                    () -> "first different row: " + what);
                            assertTrue(
                                    problem.a().bitwiseEquals(result.gathered().orElseThrow()),
                                    () -> "gathered A: " + what);
                        }
                    }
                });
    }

    @ParameterizedTest
    @EnumSource(Algorithm.class)
    void manyRanksOnFewCoresComplete(Algorithm algorithm) {
        check(algorithm, 16, DType.BF16, DType.BF16, DType.FP32, false, 7);
    }

    @Test
    void scalarAndVectorEnginesGiveTheSameBits() {
        Arena arena = Arena.ofAuto();
        Problem problem = sample(arena, Shards.of(50, 0, 31));
        Ranks.run(
                3,
                fabric -> {
                    try (AllGatherMatmul op =
                            problem.on(fabric)
                                    .engine("scalar")
                                    .algorithm(Algorithm.RING)
                                    .prepare()) {
                        Result<Matrix> result = op.call(problem.shard(fabric.rank()));
                        assertTrue(problem.unfused().bitwiseEquals(result.product()));
                        assertEquals("scalar", op.engine());
                        assertTrue(op.sameBitsForAnyRows());
                    }
                });
    }

    @Test
    void anUnknownEngineIsRefusedWithTheKnownOnes() {
        Ranks.run(
                1,
                fabric -> {
                    var builder = AllGatherMatmul.on(fabric);
                    var refusal =
                            assertThrows(
                                    IllegalArgumentException.class, () -> builder.engine("blas"));
                    assertEquals(Gemms.unknown("blas").getMessage(), refusal.getMessage());
                });
    }

    @Test
    void severalRightHandSidesShareOneGather() {
        Arena arena = Arena.ofAuto();
        Problem problem = sample(arena, Shards.of(40, 23));
        Matrix second = Matrix.allocate(arena, DType.BF16, 9, problem.a().cols());
        new NormalData(5, 9).fill(second);
        Matrix unfused =
                Problem.unfused(
                        Gemms.auto(DType.FP16, second.dtype()),
                        arena,
                        problem.a(),
                        second,
                        true,
                        DType.FP32);
        Ranks.run(
                2,
                fabric -> {
                    try (AllGatherMatmul op =
                            AllGatherMatmul.on(fabric)
                                    .a(problem.shards(), DType.FP16)
                                    .b(problem.b())
                                    .b(second, true)
                                    .algorithm(Algorithm.MESH_PUSH)
                                    .prepare()) {
                        Result<Matrix> result = op.call(problem.shard(fabric.rank()));
                        assertEquals(DType.FP32, result.product(0).dtype());
                        assertTrue(unfused.bitwiseEquals(result.product(1)));
                    }
                });
    }

    @Test
    void aStartedCallIsAwaitedLaterAndAShardMayBeWrittenInPlace() {
        Arena arena = Arena.ofAuto();
        Problem problem = sample(arena, Shards.even(101, 4));
        Ranks.run(
                4,
                fabric -> {
                    try (AllGatherMatmul op = operator(fabric, problem, Algorithm.MESH_PULL)) {
                        PendingCall<Matrix> pending = op.start(problem.shard(fabric.rank()));
                        assertThrows(
                                IllegalStateException.class,
                                () -> op.call(problem.shard(fabric.rank())));
                        assertTrue(problem.unfused().bitwiseEquals(pending.await().product()));
                        assertTrue(pending.isDone());
                        assertThrows(IllegalStateException.class, pending::await);
                        for (int i = 0; i < 5; i++) {
                            Matrix place = op.nextShard();
                            place.copyFrom(problem.shard(fabric.rank()));
                            Result<Matrix> result = op.call(place);
                            assertTrue(problem.unfused().bitwiseEquals(result.product()));
                            assertTrue(
                                    result.timeline().tracks().getFirst().spans().isEmpty(),
                                    "a shard in its place is not staged");
                        }
                    }
                });
    }

    @Test
    void replicaGroupsGatherOnTheirOwn() {
        Arena arena = Arena.ofAuto();
        Problem one = sample(arena, Shards.of(10, 20, 30));
        Problem two = sample(arena, Shards.of(30, 0, 5));
        Ranks.run(
                6,
                fabric -> {
                    Problem mine = fabric.rank() < 3 ? one : two;
                    try (var group = fabric.split(2);
                            AllGatherMatmul op = operator(group, mine, Algorithm.RING)) {
                        assertEquals(fabric.rank() % 3, group.rank());
                        assertEquals(fabric.rank(), group.worldRank(group.rank()));
                        Result<Matrix> result = op.call(mine.shard(group.rank()));
                        assertTrue(mine.unfused().bitwiseEquals(result.product()));
                    }
                });
    }

    @Test
    void viewsMeasurePartsAndLeaveResultsRight() {
        for (Algorithm algorithm : REAL) {
            Arena arena = Arena.ofAuto();
            Problem problem = sample(arena, Shards.of(33, 64, 5));
            Ranks.run(
                    3,
                    fabric -> {
                        try (AllGatherMatmul op = operator(fabric, problem, algorithm)) {
                            for (int i = 0; i < 2; i++) {
                                op.call(problem.shard(fabric.rank()));
                            }
                            Result<Matrix> compute = op.callInPlace(View.COMPUTE_ONLY);
                            assertTrue(
                                    problem.unfused().bitwiseEquals(compute.product()),
                                    "both halves hold the same rows by now");
                            Result<Matrix> comm = op.callInPlace(View.COMM_ONLY);
                            assertTrue(comm.gatherNs() > 0, "gather time is recorded");
                            Result<Matrix> all = op.callInPlace(View.PIPELINED);
                            assertTrue(problem.unfused().bitwiseEquals(all.product()));
                            assertEquals(algorithm == Algorithm.SEQUENTIAL, all.gatherNs() > 0);
                        }
                    });
        }
    }

    @Test
    void timelineTellsEveryBlockAndTransferOnce() {
        Arena arena = Arena.ofAuto();
        Problem problem = sample(arena, Shards.of(70, 0, 31, 64));
        Ranks.run(
                4,
                fabric -> {
                    try (AllGatherMatmul op = operator(fabric, problem, Algorithm.RING)) {
                        op.call(problem.shard(fabric.rank()));
                        Timeline timeline = op.call(problem.shard(fabric.rank())).timeline();
                        long[] computed = new long[4];
                        long transfers = 0;
                        for (Timeline.Track track : timeline.tracks()) {
                            long last = 0;
                            for (Timeline.Span span : track.spans()) {
                                assertTrue(last <= span.startNs(), "spans follow each other");
                                assertTrue(span.startNs() <= span.endNs());
                                assertTrue(span.endNs() <= timeline.elapsedNs());
                                last = span.endNs();
                                if (span.kind() == Timeline.Kind.COMPUTE) {
                                    computed[span.source()] += span.rows();
                                }
                                transfers += span.kind() == Timeline.Kind.TRANSFER ? 1 : 0;
                            }
                        }
                        assertArrayEquals(new long[] {70, 0, 31, 64}, computed);
                        assertEquals(op.plan().steps().get(op.rank()).copies().count(), transfers);
                    }
                });
    }

    @Test
    void badArgumentsAreRefusedWithTheirValues() {
        Arena arena = Arena.ofAuto();
        Problem problem = sample(arena, Shards.of(12));
        List<String> messages =
                Ranks.call(
                        1,
                        fabric -> {
                            try (AllGatherMatmul op = operator(fabric, problem, Algorithm.RING)) {
                                Matrix wrong = problem.a().rows(0, 11);
                                return assertThrows(
                                                IllegalArgumentException.class,
                                                () -> op.call(wrong))
                                        .getMessage();
                            }
                        });
        assertEquals("A of rank 0 is [11, 65] fp16: expected [12, 65] fp16", messages.getFirst());
    }

    private static Problem sample(Arena arena, Shards shards) {
        return Problem.create(arena, shards, 65, 50, DType.FP16, 11);
    }

    private static AllGatherMatmul operator(
            dev.weft.fabric.Fabric fabric, Problem problem, Algorithm algorithm) {
        return problem.on(fabric).algorithm(algorithm).prepare();
    }
}
