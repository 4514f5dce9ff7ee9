package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemms;
import dev.weft.op.Operator.PendingCall;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Call after call without barriers, with ranks that are late at random: no rank may see rows of
 * another call than its own, and none may lose rows that it still reads.
 */
class ReuseRuleTest {

    /** Odd and more than two: neither the last call nor the one before has the same rows. */
    private static final int INPUTS = 31;

    private static final long K = 20;

    /** One B, several A, and the product of each. */
    private record Series(Shards shards, Matrix b, List<Matrix> as, List<Matrix> products) {

        static Series create(Arena arena, Shards shards, long n, long seed) {
            Matrix b = Matrix.allocate(arena, DType.FP32, K, n);
            new NormalData(seed, 1).fill(b);
            List<Matrix> as = new ArrayList<>();
            List<Matrix> products = new ArrayList<>();
            for (int i = 0; i < INPUTS; i++) {
                Matrix a = Matrix.allocate(arena, DType.BF16, shards.totalRows(), K);
                new NormalData(seed + i, 0).fill(a);
                as.add(a);
                products.add(
                        Problem.unfused(Gemms.byName("scalar"), arena, a, b, false, DType.FP32));
            }
            return new Series(shards, b, as, products);
        }

        Matrix shard(int call, int rank) {
            return as.get(call % INPUTS).rows(shards.firstRow(rank), shards.rows(rank));
        }

        AllGatherMatmul operator(Transport fabric, Algorithm algorithm, Pauses pauses) {
            return AllGatherMatmul.on(fabric)
                    .a(shards, DType.BF16)
                    .b(b)
                    .engine(new GemmProxy(Gemms.byName("scalar"), pauses::pause))
                    .algorithm(algorithm)
                    .chunkRows(2)
                    .computeWorkers(1 + fabric.rank() % 2)
                    .keepGathered()
                    .prepare();
        }

        void check(Result<Matrix> result, int call, Pauses pauses, String what) {
            for (int look = 0; look < 2; look++) {
                Matrix expected = products.get(call % INPUTS);
                assertEquals(-1, expected.firstDifferentRow(result.product()), what);
                Matrix gathered = result.gathered().orElseThrow();
                assertEquals(-1, as.get(call % INPUTS).firstDifferentRow(gathered), what);
                pauses.pause();
            }
        }
    }

    /** Writes the rows where they are gathered from, slowly, as a producer would. */
    private static Result<Matrix> produceInPlace(
            AllGatherMatmul op, Matrix rows, Pauses pauses, boolean given) {
        Matrix place = op.nextShard();
        for (long row = 0; row < rows.rows(); row++) {
            place.rows(row, 1).copyFrom(rows.rows(row, 1));
            pauses.pause();
        }
        return given ? op.call(place) : op.callInPlace(View.PIPELINED);
    }

    @ParameterizedTest
    @EnumSource(Algorithm.class)
    void randomDelaysNeverMixCalls(Algorithm algorithm) {
        long seed = 1000 + algorithm.ordinal();
        run(
                algorithm,
                Shards.of(5, 0, 9, 3),
                seed,
                400,
                new int[] {60_000, 60_000, 60_000, 60_000});
    }

    /** It owns nothing, so nobody waits for its rows; but it reads, and must not be overrun. */
    @ParameterizedTest
    @EnumSource(Algorithm.class)
    void aSlowRankWithoutRowsKeepsWhatItReads(Algorithm algorithm) {
        long seed = 2000 + algorithm.ordinal();
        run(algorithm, Shards.of(4, 0, 7), seed, 150, new int[] {1000, 1_000_000, 1000});
    }

    private static void run(
            Algorithm algorithm, Shards shards, long seed, int calls, int[] longestNs) {
        Arena arena = Arena.ofAuto();
        Series series = Series.create(arena, shards, 18, seed);
        Ranks.run(
                shards.ranks(),
                fabric -> {
                    int rank = fabric.rank();
                    Pauses pauses = new Pauses(seed * 64 + rank, longestNs[rank]);
                    try (AllGatherMatmul op = series.operator(fabric, algorithm, pauses)) {
                        for (int call = 0; call < calls; call++) {
                            Matrix rows = series.shard(call, rank);
                            pauses.pause();
                            Result<Matrix> result =
                                    call % 3 == 0
                                            ? op.call(rows)
                                            : produceInPlace(op, rows, pauses, call % 3 == 1);
                            String what =
                                    "%s, rank %d, call %d, seed %d"
                                            .formatted(algorithm.label(), rank, call, seed);
                            series.check(result, call, pauses, what);
                        }
                    }
                });
    }

    @ParameterizedTest
    @EnumSource(Algorithm.class)
    void operatorsInterleavedOnOneFabricDoNotMix(Algorithm algorithm) {
        long seed = 3000 + algorithm.ordinal();
        Algorithm other = Algorithm.values()[(algorithm.ordinal() + 1) % Algorithm.values().length];
        Arena arena = Arena.ofAuto();
        Series one = Series.create(arena, Shards.of(6, 1, 4), 18, seed);
        Series two = Series.create(arena, Shards.of(0, 8, 3), 7, seed + 100);
        Ranks.run(
                3,
                fabric -> {
                    int rank = fabric.rank();
                    Pauses pauses = new Pauses(seed * 64 + rank, 60_000);
                    try (AllGatherMatmul first = one.operator(fabric, algorithm, pauses);
                            AllGatherMatmul second = two.operator(fabric, other, pauses)) {
                        for (int call = 0; call < 100; call++) {
                            String what =
                                    "%s and %s, rank %d, call %d, seed %d"
                                            .formatted(
                                                    algorithm.label(),
                                                    other.label(),
                                                    rank,
                                                    call,
                                                    seed);
                            PendingCall<Matrix> a = first.start(one.shard(call, rank));
                            pauses.pause();
                            PendingCall<Matrix> b = second.start(two.shard(call, rank));
                            if ((call + rank) % 2 == 0) {
                                one.check(a.await(), call, pauses, what);
                                two.check(b.await(), call, pauses, what);
                            } else {
                                two.check(b.await(), call, pauses, what);
                                one.check(a.await(), call, pauses, what);
                            }
                            assertTrue(a.isDone() && b.isDone(), what);
                        }
                    }
                });
    }
}
