package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Ranks;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import dev.weft.tensor.data.NormalData;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A packed B that several operators use. */
class WeightsTest {

    private static final int RANKS = 3;
    private static final long K = 70;
    private static final long N = 37;
    private static final Shards ROWS = Shards.of(20, 0, 13);
    private static final Shards K_PARTS = Shards.of(K, K, K);

    /** An operator of weights, or of the matrix if those are null. */
    private interface Kind {
        Operator<Matrix> prepare(Fabric fabric, Matrix b, Weights weights);
    }

    private static final List<Kind> KINDS =
            List.of(
                    (fabric, b, weights) ->
                            gather(fabric, b, weights).algorithm(Algorithm.RING).prepare(),
                    (fabric, b, weights) ->
                            gather(fabric, b, weights)
                                    .a(Shards.of(1, 40, 2), b.dtype())
                                    .algorithm(Algorithm.DIRECT)
                                    .epilogue(Epilogue.none().gelu())
                                    .prepare(),
                    (fabric, b, weights) ->
                            sum(MatmulReduceScatter.on(fabric), b, weights)
                                    .algorithm(Reduction.DIRECT)
                                    .prepare(),
                    (fabric, b, weights) ->
                            sum(MatmulAllReduce.on(fabric), b, weights)
                                    .algorithm(Reduction.RING)
                                    .prepare());

    private static AllGatherMatmulBuilder gather(Fabric fabric, Matrix b, Weights weights) {
        AllGatherMatmulBuilder builder =
                AllGatherMatmul.on(fabric).a(ROWS, b.dtype()).engine("portable");
        return weights == null ? builder.b(b) : builder.b(weights);
    }

    private static <O extends Operator<Matrix>> MatmulReduceBuilder<O> sum(
            MatmulReduceBuilder<O> builder, Matrix b, Weights weights) {
        builder.a(ROWS, K_PARTS, b.dtype()).engine("portable");
        return weights == null ? builder.b(b) : builder.b(weights);
    }

    private static Matrix b(DType type, long seed, long rank) {
        Matrix b = Matrix.allocate(Arena.ofAuto(), type, K, N);
        new NormalData(seed, rank).fill(b);
        return b;
    }

    private static Matrix call(Operator<Matrix> operator) {
        new NormalData(5, operator.rank()).fill(operator.nextShard());
        return operator.callInPlace(View.PIPELINED).product();
    }

    private static void assertLike(Kind kind, Fabric fabric, Matrix b, Operator<Matrix> actual) {
        try (Operator<Matrix> anew = kind.prepare(fabric, b, null)) {
            assertTrue(call(anew).bitwiseEquals(call(actual)));
        }
    }

    /** At the same time, before and after another matrix has replaced the first. */
    @ParameterizedTest
    @CsvSource({"FP32, true", "FP32, false", "BF16, true", "BF16, false"})
    void operatorsOfAnyKindUseOneCopy(DType type, boolean same) {
        ConcurrentLinkedQueue<Long> addresses = new ConcurrentLinkedQueue<>();
        Ranks.run(
                RANKS,
                fabric -> {
                    long seed = same ? 0 : fabric.rank();
                    Matrix first = b(type, 1, seed);
                    Matrix second = b(type, 2, seed);
                    List<Operator<Matrix>> operators = new ArrayList<>();
                    Weights weights = Weights.pack(fabric, first, false, type, "portable");
                    addresses.add(weights.packed().b().panels().address());
                    KINDS.forEach(kind -> operators.add(kind.prepare(fabric, first, weights)));
                    for (Matrix each : List.of(first, second, first)) {
                        weights.replace(each);
                        for (int i = 0; i < operators.size(); i++) {
                            assertLike(KINDS.get(i), fabric, each, operators.get(i));
                        }
                    }
                    IllegalStateException used =
                            assertThrows(IllegalStateException.class, weights::close);
                    assertEquals(
                            "weights that 4 operators use: close those first", used.getMessage());
                    operators.forEach(Operator::close);
                    weights.close();
                    weights.close();
                });
        assertEquals(same ? 1 : RANKS, addresses.stream().distinct().count());
    }

    @Test
    void whatDoesNotFitIsRefused() {
        Ranks.run(
                RANKS,
                fabric -> {
                    Matrix b = b(DType.FP32, 1, 0);
                    try (Weights weights = Weights.pack(fabric, b, false, DType.FP32, "portable");
                            Operator<Matrix> op = KINDS.get(0).prepare(fabric, b, weights)) {
                        assertRefused(
                                UnsupportedOperationException.class,
                                "B number 0 is weights that other operators may use: replace it by"
                                        + " Weights.replace",
                                () -> op.replaceB(0, b));
                        assertRefused(
                                IllegalArgumentException.class,
                                "the B of these weights is to be replaced by [37, 70] fp32: expected"
                                        + " [70, 37] fp32, as it was given",
                                () ->
                                        weights.replace(
                                                Matrix.allocate(Arena.ofAuto(), DType.FP32, N, K)));
                        Operator.PendingCall<Matrix> call = op.start(op.nextShard(), ROWS);
                        assertRefused(
                                IllegalStateException.class,
                                "a call is under way: await it first",
                                () -> weights.replace(b));
                        call.await();
                        assertLike(KINDS.get(0), fabric, b, op);
                    }
                });
    }

    private static void assertRefused(
            Class<? extends RuntimeException> type, String message, Runnable refused) {
        assertEquals(message, assertThrows(type, refused::run).getMessage());
    }

    @ParameterizedTest
    @CsvSource({"FP32, vector", "BF16, auto"})
    void anotherEngineOrTypeIsRefused(DType type, String engine) {
        Ranks.run(
                1,
                fabric -> {
                    Matrix b = b(DType.FP32, 1, 0);
                    try (Weights weights = Weights.pack(fabric, b)) {
                        AllGatherMatmulBuilder builder =
                                AllGatherMatmul.on(fabric)
                                        .a(Shards.of(4), type)
                                        .b(weights)
                                        .engine(engine);
                        assertEquals(
                                "weights [70, 37] fp32 for A of fp32 and engine auto, in an operator"
                                        + " with A of %s and engine %s: expected the same"
                                                .formatted(type.label(), engine),
                                assertThrows(IllegalArgumentException.class, builder::prepare)
                                        .getMessage());
                    }
                });
    }

    @Test
    void matricesWithScalesArePackedWithThem() {
        Ranks.run(
                2,
                fabric -> {
                    Matrix a = Matrix.allocate(Arena.ofAuto(), DType.FP32, 4, K);
                    new NormalData(3, fabric.rank()).fill(a);
                    Matrix rows =
                            ScaledMatrix.rowsOf(Arena.ofAuto(), a, DType.E4M3, Scaling.TENSOR);
                    ScaledMatrix b =
                            ScaledMatrix.ofB(
                                    Arena.ofAuto(),
                                    b(DType.FP32, 1, 0),
                                    false,
                                    DType.E4M3,
                                    Scaling.TENSOR);
                    try (Weights weights = Weights.pack(fabric, b, false, DType.E4M3, "auto");
                            AllGatherMatmul op = scaled(fabric).b(weights).prepare();
                            AllGatherMatmul anew = scaled(fabric).b(b, false).prepare()) {
                        Matrix expected = anew.call(rows).product();
                        assertTrue(expected.bitwiseEquals(op.call(rows).product()));
                        assertThrows(
                                UnsupportedOperationException.class,
                                () -> weights.replace(b(DType.FP32, 1, 0)));
                    }
                });
    }

    private static AllGatherMatmulBuilder scaled(Fabric fabric) {
        return AllGatherMatmul.on(fabric)
                .scaledA(Shards.of(4, 4), DType.E4M3, Scaling.TENSOR)
                .algorithm(Algorithm.RING);
    }
}
