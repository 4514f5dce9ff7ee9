package dev.weft.op;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class RankThreadsTest {

    @Test
    void everyNumberIsDoneOnceBetweenTheCallsOfAnOperator() {
        try (World world = World.threads(2)) {
            world.run(
                    fabric -> {
                        Matrix b = Matrix.copyOf(Arena.ofAuto(), new float[][] {{2}});
                        Matrix a = Matrix.copyOf(Arena.ofAuto(), new float[][] {{3}});
                        try (AllGatherMatmul operator =
                                AllGatherMatmul.on(fabric)
                                        .a(Shards.of(1, 1), DType.FP32)
                                        .b(b)
                                        .computeWorkers(3)
                                        .prepare()) {
                            for (int count = 0; count < 40; count++) {
                                int[] done = new int[count];
                                operator.forEach(count, i -> done[i]++);
                                assertArrayEquals(
                                        IntStream.range(0, count).map(i -> 1).toArray(), done);
                                assertEquals(6, operator.call(a).product().get(0, 0));
                            }
                        }
                    });
        }
    }

    @Test
    void whatATaskThrowsIsThrownAndTheNextCallWorks() {
        RuntimeException broken = new IllegalStateException("broken");
        AtomicInteger done = new AtomicInteger();
        try (World world = World.threads(1)) {
            world.run(
                    fabric -> {
                        Matrix b = Matrix.copyOf(Arena.ofAuto(), new float[][] {{2}});
                        AllGatherMatmul threads =
                                AllGatherMatmul.on(fabric)
                                        .a(Shards.of(1), DType.FP32)
                                        .b(b)
                                        .prepare();
                        RuntimeException thrown =
                                assertThrows(
                                        RuntimeException.class,
                                        () ->
                                                threads.forEach(
                                                        5,
                                                        i -> {
                                                            throw broken;
                                                        }));
                        assertSame(broken, thrown);
                        threads.forEach(5, i -> done.incrementAndGet());
                        assertEquals(5, done.get());
                        threads.close();
                        threads.close();
                        assertThrows(
                                IllegalStateException.class, () -> threads.forEach(1, i -> {}));
                    });
        }
    }

    /** Workers share columns, rows, or blocks of rows, depending on how many a call has. */
    @Test
    void normalizedSumsAreTheSameHoweverThreadsShareThem() {
        int most = 1200;
        int k = 96;
        int n = 200;
        Arena arena = Arena.ofAuto();
        Matrix a = Matrix.allocate(arena, DType.FP32, most, k);
        Matrix b = Matrix.allocate(arena, DType.FP32, k, n);
        Matrix bias = Matrix.allocate(arena, DType.FP32, 1, n);
        Random random = new Random(1);
        for (Matrix each : List.of(a, b, bias)) {
            for (long i = 0; i < each.rows() * each.cols(); i++) {
                each.data().setAtIndex(JAVA_FLOAT, i, random.nextFloat() - 0.5f);
            }
        }
        int[] rows = {1, 5, 12, 13, 24, 25, 48, 75, 76, 128, 299, 301, 600, most};
        try (World world = World.threads(1)) {
            world.run(
                    fabric -> {
                        try (MatmulReduceScatter one = normed(fabric, 1, a, b, bias);
                                MatmulReduceScatter two = normed(fabric, 2, a, b, bias);
                                MatmulReduceScatter five = normed(fabric, 5, a, b, bias)) {
                            for (int count : rows) {
                                Matrix part = a.rows(0, count);
                                Shards shards = Shards.of(count);
                                Matrix expected = one.call(part, shards).product();
                                assertEquals(count, expected.rows());
                                for (MatmulReduceScatter each : List.of(two, five)) {
                                    Matrix found = each.call(part, shards).product();
                                    assertEquals(-1, found.firstDifferentRow(expected));
                                }
                            }
                        }
                    });
        }
    }

    private static MatmulReduceScatter normed(
            Fabric fabric, int workers, Matrix a, Matrix b, Matrix bias) {
        return MatmulReduceScatter.on(fabric)
                .a(Shards.of(a.rows()), Shards.of(a.cols()), DType.FP32)
                .b(b)
                .algorithm(Reduction.DIRECT)
                .computeWorkers(workers)
                .epilogue(Epilogue.none().bias(bias).layerNorm(bias, bias, 1e-5))
                .prepare();
    }

    /** The first plan has the words that all plans wait for. */
    @Test
    void anOperatorIsClosedWhileACallOfFewerRowsIsUnderWay() {
        Matrix b = Matrix.allocate(Arena.ofAuto(), DType.FP32, 64, 32);
        Matrix a = Matrix.allocate(Arena.ofAuto(), DType.FP32, 4, 64);
        try (World world = World.threads(2)) {
            world.run(
                    fabric -> {
                        for (int i = 0; i < 40; i++) {
                            AllGatherMatmulBuilder builder =
                                    AllGatherMatmul.on(fabric)
                                            .a(Shards.of(600, 600), DType.FP32)
                                            .b(b);
                            AllGatherMatmul operator =
                                    (i % 2 == 0 ? builder : builder.pinWorkers()).prepare();
                            assertEquals(8, operator.call(a, Shards.of(4, 4)).product().rows());
                            operator.start(a, Shards.of(4, 4));
                            operator.close();
                        }
                        fabric.barrier();
                    });
        }
    }
}
