package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Ranks;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

class PingPongTest {

    @Test
    void theProductIsBitwiseTheUnfusedOneForAnyShards() {
        Random random = new Random(5);
        for (int ranks = 1; ranks <= 9; ranks++) {
            long seed = random.nextLong();
            Random sizes = new Random(seed);
            long[] rows = sizes.longs(ranks, 0, 70).map(r -> r % 3 == 0 ? 0 : r).toArray();
            Shards shards = Shards.of(rows);
            String what = "shards " + shards + ", seed " + seed;
            int lanes = 1 + ranks % 3;
            Arena arena = Arena.ofAuto();
            Problem problem = Problem.create(arena, shards, 40, 30, DType.BF16, seed);
            Ranks.run(
                    ranks,
                    fabric -> {
                        Random pauses = new Random(seed + fabric.rank());
                        try (AllGatherMatmul op =
                                problem.on(fabric)
                                        .pingPong(lanes)
                                        .chunkRows(7)
                                        .computeWorkers(2)
                                        .columnParts(1 + lanes)
                                        .prepare()) {
                            for (int call = 0; call < 12; call++) {
                                LockSupport.parkNanos(pauses.nextInt(300_000));
                                Result<Matrix> result = op.call(problem.shard(fabric.rank()));
                                assertEquals(
                                        -1,
                                        problem.unfused().firstDifferentRow(result.product()),
                                        what);
                                if (call % 4 == 3) {
                                    op.callInPlace(View.COMM_ONLY);
                                    op.callInPlace(View.COMPUTE_ONLY);
                                }
                            }
                        }
                    });
        }
    }

    /** Two shards land, whatever the number of ranks; gathered A would be all of them, twice. */
    @Test
    void noGatheredAIsStoredAnywhere() {
        int ranks = 16;
        Shards shards = Shards.even(64 * ranks, ranks);
        long shardBytes = Matrix.contiguousBytes(DType.BF16, 64, 512);
        Arena arena = Arena.ofAuto();
        Matrix b = Matrix.allocate(arena, DType.BF16, 512, 8);
        List<Long> bytes =
                Ranks.call(
                        ranks,
                        fabric -> {
                            try (AllGatherMatmul op =
                                    AllGatherMatmul.on(fabric)
                                            .a(shards, DType.BF16)
                                            .b(b)
                                            .pingPong()
                                            .prepare()) {
                                assertTrue(op.call(op.nextShard()).gathered().isEmpty());
                                return op.reachableBytes();
                            }
                        });
        for (long reachable : bytes) {
            // Two places of the own shard, two buffers, and under 32 KiB of words.
            assertTrue(reachable >= 4 * shardBytes, "got " + reachable);
            assertTrue(reachable <= 4 * shardBytes + (32 << 10), "got " + reachable);
        }
    }

    @Test
    void keepingGatheredAIsAContradiction() {
        Arena arena = Arena.ofAuto();
        Matrix b = Matrix.allocate(arena, DType.FP32, 4, 4);
        assertThrows(
                IllegalArgumentException.class,
                () ->
                        Ranks.run(
                                1,
                                fabric ->
                                        AllGatherMatmul.on(fabric)
                                                .a(Shards.of(3), DType.FP32)
                                                .b(b)
                                                .pingPong()
                                                .keepGathered()
                                                .prepare()));
    }

    @Test
    void gathersWithoutAProductAreByteExactByRowsAndByColumns() {
        for (Algorithm algorithm : Algorithm.values()) {
            for (int ranks = 1; ranks <= 5; ranks++) {
                gather(algorithm, ranks);
            }
        }
    }

    private static void gather(Algorithm algorithm, int ranks) {
        Shards shards = Shards.even(37, ranks);
        Arena arena = Arena.ofAuto();
        Matrix below = Matrix.allocate(arena, DType.FP16, 37, 11);
        Matrix beside = Matrix.allocate(arena, DType.FP16, 13, 7L * ranks);
        new NormalData(1, 2).fill(below);
        new NormalData(1, 3).fill(beside);
        Ranks.run(
                ranks,
                fabric -> {
                    int rank = fabric.rank();
                    try (AllGather<Matrix> rows =
                                    AllGather.rows(fabric, shards, 11, DType.FP16, algorithm);
                            AllGather<Matrix> columns =
                                    AllGather.columns(fabric, 13, 7, DType.FP16, algorithm, 4)) {
                        for (int call = 0; call < 3; call++) {
                            Matrix shard = below.rows(shards.firstRow(rank), shards.rows(rank));
                            assertTrue(below.bitwiseEquals(rows.call(shard)));
                            Matrix part = beside.block(0, 13, 7L * rank, 7);
                            assertTrue(
                                    beside.bitwiseEquals(columns.call(part)),
                                    algorithm + " of " + ranks);
                        }
                    }
                });
    }
}
