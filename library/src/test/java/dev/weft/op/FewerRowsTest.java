package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Hosts;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Calls of fewer rows than an operator was prepared for. */
class FewerRowsTest {

    private static final int CALLS = 9;

    private static Shards random(Random random, int ranks, int most) {
        return Shards.of(
                LongStream.generate(() -> random.nextInt(5) == 0 ? 0 : random.nextInt(most + 1))
                        .limit(ranks)
                        .toArray());
    }

    /** None, all, one, or any number of the rows of each rank. */
    private static Shards fewer(Random random, Shards most) {
        int kind = random.nextInt(5);
        long[] rows = new long[most.ranks()];
        Arrays.setAll(
                rows,
                r ->
                        switch (kind) {
                            case 0 -> most.rows(r);
                            case 1 -> Math.min(1, most.rows(r));
                            case 2 -> random.nextInt(4) == 0 ? most.rows(r) : 0;
                            default -> random.nextLong(most.rows(r) + 1);
                        });
        return Shards.of(rows);
    }

    /** The same as operators that are prepared for the rows of each call. */
    @ParameterizedTest
    @MethodSource("dev.weft.op.OperatorKind#withAlgorithms")
    void bitsAreThoseOfAnOperatorForTheseRows(OperatorKind kind, String algorithm) {
        boolean auto = algorithm.equals("auto");
        for (int seed = 0; seed < (auto ? 1 : 2); seed++) {
            Random random = new Random(seed * 31L + algorithm.hashCode());
            int ranks = 1 + random.nextInt(4);
            boolean apart = ranks > 1 && random.nextInt(3) == 0 && !algorithm.equals("direct");
            Hosts hosts = apart ? Hosts.of(1, ranks - 1) : Hosts.one(ranks);
            Shards most = random(random, ranks, 70);
            int chunkRows = random.nextBoolean() ? 0 : 1 + random.nextInt(40);
            try (Arena arena = Arena.ofShared()) {
                Problem all = Problem.create(arena, most, 24, 37, DType.BF16, seed);
                List<Shards> calls =
                        LongStream.range(0, CALLS).mapToObj(i -> fewer(random, most)).toList();
                String what = "seed %d, %s, hosts %s".formatted(seed, most, hosts);
                Ranks.run(
                        ranks,
                        given -> {
                            Transport fabric =
                                    apart
                                            ? OnHosts.of(Transport.of(given), hosts)
                                            : Transport.of(given);
                            check(kind, algorithm, chunkRows, fabric, all, calls, what);
                        });
            }
        }
    }

    private static void check(
            OperatorKind kind,
            String algorithm,
            int chunkRows,
            Fabric fabric,
            Problem all,
            List<Shards> calls,
            String what) {
        MatmulBuilder<Matrix, ?> builder = kind.on(fabric, all, algorithm).computeWorkers(2);
        if (chunkRows > 0) {
            builder.chunkRows(chunkRows);
        }
        try (Operator<Matrix> operator = builder.prepare()) {
            for (Shards shards : calls) {
                Problem problem = all.first(shards);
                Matrix product =
                        operator.call(kind.input(problem, fabric.rank()), shards).product(0);
                assertEquals(kind.expected(problem, fabric.rank()).rows(), product.rows(), what);
                assertTrue(
                        shards.totalRows() == 0
                                || isResultOfAnother(kind, algorithm, fabric, problem, product),
                        () -> "%s: rank %d of a call of %s".formatted(what, fabric.rank(), shards));
            }
        }
    }

    private static boolean isResultOfAnother(
            OperatorKind kind, String algorithm, Fabric fabric, Problem problem, Matrix product) {
        String same = algorithm.equals("auto") ? "direct" : algorithm;
        try (Operator<Matrix> fresh = kind.on(fabric, problem, same).prepare()) {
            Matrix expected = fresh.call(kind.input(problem, fabric.rank())).product(0);
            return expected.bitwiseEquals(product);
        }
    }

    @ParameterizedTest
    @EnumSource(Algorithm.class)
    void gatheredRowsHaveNoGaps(Algorithm algorithm) {
        Shards most = Shards.of(40, 0, 13, 26);
        Random random = new Random(5);
        try (Arena arena = Arena.ofShared()) {
            Problem all = Problem.create(arena, most, 20, 9, DType.FP32, 5);
            List<Shards> calls =
                    LongStream.range(0, CALLS).mapToObj(i -> fewer(random, most)).toList();
            Ranks.run(
                    most.ranks(),
                    fabric -> {
                        try (Operator<Matrix> operator =
                                all.on(fabric).algorithm(algorithm).keepGathered().prepare()) {
                            for (Shards shards : calls) {
                                Problem problem = all.first(shards);
                                Matrix place = operator.nextShard(shards);
                                place.copyFrom(problem.shard(fabric.rank()));
                                Result<Matrix> result =
                                        operator.callInPlace(View.PIPELINED, shards);
                                assertTrue(
                                        problem.a().bitwiseEquals(result.gathered().orElseThrow()),
                                        "A of " + shards);
                                assertTrue(
                                        problem.unfused().bitwiseEquals(result.product(0)),
                                        "C of " + shards);
                            }
                        }
                        try (AllGather<Matrix> gather =
                                AllGather.rows(fabric, most, 20, DType.FP32, algorithm)) {
                            for (Shards shards : calls) {
                                Problem problem = all.first(shards);
                                Matrix gathered = gather.call(problem.shard(fabric.rank()), shards);
                                assertTrue(
                                        problem.a().bitwiseEquals(gathered), "only A of " + shards);
                            }
                        }
                    });
        }
    }

    /** Calls of different rows take different plans, and peers read results of any of them. */
    @Test
    void peersReadResultsOfAnyRows() {
        Shards most = Shards.of(40, 0, 13);
        Random random = new Random(9);
        try (Arena arena = Arena.ofShared()) {
            Problem all = Problem.create(arena, most, 20, 9, DType.FP32, 9);
            List<Shards> calls =
                    LongStream.range(0, 4 * CALLS).mapToObj(i -> fewer(random, most)).toList();
            Ranks.run(
                    most.ranks(),
                    fabric -> {
                        try (Operator<Matrix> operator =
                                all.on(fabric).keepGathered().sharedResults().prepare()) {
                            int peer = (fabric.rank() + 1) % most.ranks();
                            for (Shards shards : calls) {
                                Problem problem = all.first(shards);
                                operator.call(problem.shard(fabric.rank()), shards);
                                assertTrue(
                                        problem.unfused()
                                                .bitwiseEquals(operator.peerProduct(peer, 0)),
                                        "C of " + shards);
                                assertTrue(
                                        problem.a().bitwiseEquals(operator.peerGathered(peer)),
                                        "A of " + shards);
                            }
                        }
                    });
        }
    }

    /** Whether they take the same plan or not. */
    @ParameterizedTest
    @EnumSource
    void ranksThatDisagreeGetAnErrorThatNamesBoth(OperatorKind kind) {
        Shards most = Shards.of(64, 64, 64);
        for (long other : new long[] {191, 100, 3, 0}) {
            ConcurrentLinkedQueue<String> messages = new ConcurrentLinkedQueue<>();
            try (Arena arena = Arena.ofShared()) {
                Problem all = Problem.create(arena, most, 12, 9, DType.FP32, 1);
                Ranks.run(
                        3,
                        fabric -> {
                            try (Operator<Matrix> operator =
                                    kind.on(fabric, all, "auto").prepare()) {
                                operator.call(kind.input(all, fabric.rank()));
                                Shards shards = fabric.rank() == 1 ? Shards.even(other, 3) : most;
                                Matrix input = kind.input(all.first(shards), fabric.rank());
                                RuntimeException e =
                                        assertThrows(
                                                RuntimeException.class,
                                                () -> operator.call(input, shards));
                                messages.add(e.getMessage());
                            }
                        });
            }
            assertEquals(3, messages.size());
            messages.forEach(
                    message ->
                            assertTrue(
                                    message.contains("with " + other + " rows")
                                            && message.contains("with 192 rows"),
                                    message));
        }
    }

    /**
     * As many rows in other shards, which {@link Shards#hashCode} does not tell apart: peers would
     * read rows of an earlier call.
     */
    @Test
    void ranksThatDisagreeAboutShardsGetAnError() {
        Shards most = Shards.of(64, 64, 64);
        Shards one = Shards.of(40, 40, 20);
        Shards other = Shards.of(41, 8, 51);
        assertEquals(one.hashCode(), other.hashCode());
        ConcurrentLinkedQueue<String> messages = new ConcurrentLinkedQueue<>();
        try (Arena arena = Arena.ofShared()) {
            Problem all = Problem.create(arena, most, 12, 9, DType.FP32, 1);
            Ranks.run(
                    3,
                    fabric -> {
                        try (Operator<Matrix> operator = all.on(fabric).prepare()) {
                            Shards shards = fabric.rank() == 1 ? other : one;
                            Matrix shard = all.first(shards).shard(fabric.rank());
                            RuntimeException e =
                                    assertThrows(
                                            RuntimeException.class,
                                            () -> operator.call(shard, shards));
                            messages.add(e.getMessage());
                        }
                    });
        }
        assertEquals(3, messages.size());
        messages.forEach(
                message -> assertTrue(message.contains("with 100 rows in other shards"), message));
    }

    /** A copy that throws starts nothing, and leaves the results of the call before. */
    @Test
    void aRefusedStartLeavesTheResults() {
        Shards most = Shards.of(64, 3);
        Shards few = Shards.of(2, 1);
        try (Arena arena = Arena.ofShared()) {
            Problem all = Problem.create(arena, most, 12, 9, DType.FP32, 1);
            Problem first = all.first(few);
            Ranks.run(
                    2,
                    fabric -> {
                        try (Operator<Matrix> operator = all.on(fabric).prepare()) {
                            operator.call(first.shard(fabric.rank()), few);
                            Matrix closed;
                            try (Arena own = Arena.ofShared()) {
                                long rows = most.rows(fabric.rank());
                                closed = Matrix.allocate(own, DType.FP32, rows, 12);
                            }
                            assertThrows(
                                    IllegalStateException.class, () -> operator.call(closed, most));
                            Matrix product = operator.lastResult().product();
                            assertTrue(first.unfused().bitwiseEquals(product));
                            operator.call(all.shard(fabric.rank()), most);
                            product = operator.lastResult().product();
                            assertTrue(all.unfused().bitwiseEquals(product));
                        }
                    });
        }
    }

    @Test
    void moreRowsThanPreparedAreRefused() {
        Shards most = Shards.of(4, 5);
        try (Arena arena = Arena.ofShared()) {
            Problem all = Problem.create(arena, most, 12, 9, DType.FP32, 1);
            Ranks.run(
                    2,
                    fabric -> {
                        try (Operator<Matrix> operator = all.on(fabric).prepare()) {
                            Matrix shard = all.shard(fabric.rank());
                            assertRefused(operator, shard, Shards.of(5, 0));
                            assertRefused(operator, shard, Shards.of(1, 2, 3));
                            IllegalArgumentException e =
                                    assertThrows(
                                            IllegalArgumentException.class,
                                            () -> operator.call(shard, 2));
                            assertTrue(e.getMessage().contains("expected [1, 12]"), e.getMessage());
                            assertTrue(
                                    all.unfused().bitwiseEquals(operator.call(shard).product(0)),
                                    "nothing has happened");
                        }
                    });
        }
    }

    @Test
    void aResultStaysAsItIsWhileTheNextShardIsWritten() {
        Shards most = Shards.of(4, 5);
        try (Arena arena = Arena.ofShared()) {
            Problem all = Problem.create(arena, most, 12, 9, DType.FP32, 1);
            Ranks.run(
                    2,
                    fabric -> {
                        try (Operator<Matrix> operator = all.on(fabric).keepGathered().prepare()) {
                            Shards two = Shards.of(1, 1);
                            Problem first = all.first(two);
                            Result<Matrix> result = operator.call(first.shard(fabric.rank()), two);
                            for (Shards next : List.of(most, Shards.of(0, 1))) {
                                operator.nextShard(next);
                                assertTrue(first.unfused().bitwiseEquals(result.product()));
                                assertTrue(
                                        first.a().bitwiseEquals(result.gathered().orElseThrow()));
                            }
                        }
                    });
        }
    }

    private static void assertRefused(Operator<Matrix> operator, Matrix shard, Shards shards) {
        assertThrows(IllegalArgumentException.class, () -> operator.nextShard(shards));
        IllegalArgumentException e =
                assertThrows(IllegalArgumentException.class, () -> operator.call(shard, shards));
        assertEquals(
                "a call of shards %s: expected 2 of at most 4,5 rows".formatted(shards),
                e.getMessage());
    }
}
