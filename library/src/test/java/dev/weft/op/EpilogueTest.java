package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.exec.host.PreparedEpilogue;
import dev.weft.fabric.transport.Ranks;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.code.Activations;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class EpilogueTest {

    private static final List<String> TEXTS =
            List.of(
                    "bias",
                    "relu",
                    "bias,gelu",
                    "gelu-tanh",
                    "bias,silu,residual",
                    "residual,relu",
                    "swiglu",
                    "bias,swiglu,residual",
                    "swiglu,bias,relu");

    private static Matrix random(Arena arena, DType type, long rows, long cols, long stream) {
        Matrix matrix = Matrix.allocate(arena, type, rows, cols);
        new NormalData(11, stream).fill(matrix);
        return matrix;
    }

    /** Each step by itself on single elements, from the unfused products of the whole A. */
    private static Matrix unfused(
            Arena arena, String text, List<Matrix> sums, Matrix bias, Matrix residual, DType out) {
        Matrix c = Matrix.allocate(arena, out, sums.getFirst().rows(), sums.getFirst().cols());
        Activations activations = new Activations();
        for (long row = 0; row < c.rows(); row++) {
            for (long col = 0; col < c.cols(); col++) {
                float[][] values = new float[sums.size()][1];
                for (int p = 0; p < values.length; p++) {
                    values[p][0] = sums.get(p).get(row, col);
                }
                int left = values.length;
                for (String step : text.split(",")) {
                    for (int p = 0; p < left; p++) {
                        float[] value = values[p];
                        switch (step) {
                            case "bias" -> value[0] += bias.get(0, col);
                            case "residual" -> value[0] += residual.get(row, col);
                            case "relu" -> Activations.relu(value, 1);
                            case "gelu" -> activations.gelu(value, 1);
                            case "gelu-tanh" -> activations.geluTanh(value, 1);
                            case "silu" -> activations.silu(value, 1);
                            default -> {
                                activations.siluTimes(value, values[1], 1);
                                left = 1;
                            }
                        }
                    }
                }
                c.set(row, col, values[0][0]);
            }
        }
        return c;
    }

    /** Every algorithm and step, 1 to 4 ranks, uneven and empty shards, all types. */
    @ParameterizedTest
    @EnumSource(value = Algorithm.class, mode = EnumSource.Mode.EXCLUDE, names = "AUTO")
    void resultIsBitwiseTheEpilogueOfTheUnfusedProduct(Algorithm algorithm) {
        Random random = new Random(42);
        for (int ranks = 1; ranks <= 4; ranks++) {
            for (String text : TEXTS) {
                check(algorithm, ranks, text, random.nextLong());
            }
        }
    }

    /** More columns than a step takes, and the choice of a plan. */
    @Test
    void autoAndWideProductsGiveTheSameBits() {
        check(Algorithm.AUTO, 2, "bias,gelu,residual", 8);
        checkShape(Algorithm.RING, Shards.of(40, 33), 24, 2600, "bias,swiglu,residual", 9);
    }

    private static void check(Algorithm algorithm, int ranks, String text, long seed) {
        Random random = new Random(seed);
        long[] rows = random.longs(ranks, 0, 60).map(r -> r % 4 == 0 ? 0 : r).toArray();
        long k = 1 + random.nextInt(60);
        long n = 1 + random.nextInt(90);
        checkShape(algorithm, Shards.of(rows), k, n, text, seed);
    }

    private static void checkShape(
            Algorithm algorithm, Shards shards, long k, long n, String text, long seed) {
        Random random = new Random(seed);
        DType type = DType.values()[random.nextInt(3)];
        DType out = DType.values()[random.nextInt(3)];
        String what =
                "%s %s %s %s to %s, seed %d".formatted(algorithm, shards, text, type, out, seed);
        Arena arena = Arena.ofAuto();
        long m = shards.totalRows();
        Matrix a = random(arena, type, m, k, 0);
        Gemm gemm = Gemms.auto(type, type);
        List<Matrix> bs = new ArrayList<>();
        List<Matrix> sums = new ArrayList<>();
        for (int i = 0; i < (text.contains("swiglu") ? 2 : 1); i++) {
            bs.add(random(arena, type, k, n, 10 + i));
            sums.add(Problem.unfused(gemm, arena, a, bs.getLast(), false, DType.FP32));
        }
        Matrix bias = random(arena, DType.values()[random.nextInt(3)], 1, n, 2);
        Matrix residual = random(arena, DType.values()[random.nextInt(3)], m, n, 3);
        Matrix expected = unfused(arena, text, sums, bias, residual, out);
        int parts = random.nextInt(3);
        Ranks.run(
                shards.ranks(),
                fabric -> {
                    int rank = fabric.rank();
                    AllGatherMatmulBuilder builder =
                            AllGatherMatmul.on(fabric)
                                    .a(shards, type)
                                    .output(out)
                                    .algorithm(algorithm)
                                    .computeWorkers(2)
                                    .columnParts(parts)
                                    .chunkRows(7)
                                    .epilogue(Epilogue.parse(text, () -> bias, () -> residual));
                    bs.forEach(builder::b);
                    try (AllGatherMatmul op = builder.prepare()) {
                        for (int call = 0; call < 2; call++) {
                            Matrix c =
                                    op.call(a.rows(shards.firstRow(rank), shards.rows(rank)))
                                            .product();
                            assertTrue(expected.bitwiseEquals(c), what);
                        }
                    }
                });
    }

    /** Three products of unlike widths, as queries, keys and values are, each with its bias. */
    @Test
    void eachProductHasItsBias() {
        Arena arena = Arena.ofAuto();
        Shards shards = Shards.of(9, 4);
        Matrix a = random(arena, DType.FP32, 13, 20, 0);
        List<Matrix> bs = new ArrayList<>();
        List<Matrix> biases = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            bs.add(random(arena, DType.FP32, 20, 8 + 5 * i, 10 + i));
            biases.add(random(arena, DType.FP32, 1, 8 + 5 * i, 20 + i));
        }
        Ranks.run(
                2,
                fabric -> {
                    int rank = fabric.rank();
                    AllGatherMatmulBuilder builder =
                            AllGatherMatmul.on(fabric)
                                    .a(shards, DType.FP32)
                                    .algorithm(Algorithm.RING)
                                    .epilogue(Epilogue.none().bias(biases.toArray(Matrix[]::new)));
                    bs.forEach(builder::b);
                    try (AllGatherMatmul op = builder.prepare()) {
                        Result<Matrix> result =
                                op.call(a.rows(shards.firstRow(rank), shards.rows(rank)));
                        for (int i = 0; i < 3; i++) {
                            Matrix sums =
                                    Problem.unfused(
                                            Gemms.auto(DType.FP32, DType.FP32),
                                            arena,
                                            a,
                                            bs.get(i),
                                            false,
                                            DType.FP32);
                            Matrix expected =
                                    unfused(
                                            arena,
                                            "bias",
                                            List.of(sums),
                                            biases.get(i),
                                            null,
                                            DType.FP32);
                            assertTrue(expected.bitwiseEquals(result.product(i)));
                        }
                    }
                });
    }

    @Test
    void residualIsThatOfTheCallAndAWrongOneStartsNothing() {
        Arena arena = Arena.ofAuto();
        Problem problem = Problem.create(arena, Shards.of(6), 8, 5, DType.FP32, 1);
        Matrix first = random(arena, DType.BF16, 6, 5, 3);
        Matrix second = random(arena, DType.FP32, 6, 5, 4);
        AtomicReference<Matrix> next = new AtomicReference<>(first);
        Ranks.run(
                1,
                fabric -> {
                    try (AllGatherMatmul op =
                            problem.on(fabric)
                                    .epilogue(Epilogue.none().residual(next::get))
                                    .prepare()) {
                        for (Matrix residual : List.of(first, second, first)) {
                            next.set(residual);
                            Matrix expected =
                                    unfused(
                                            arena,
                                            "residual",
                                            List.of(problem.unfused()),
                                            null,
                                            residual,
                                            DType.FP32);
                            assertTrue(expected.bitwiseEquals(op.call(problem.a()).product()));
                        }
                        next.set(random(arena, DType.FP32, 6, 4, 3));
                        Exception wrong =
                                assertThrows(
                                        IllegalArgumentException.class, () -> op.call(problem.a()));
                        assertEquals(
                                "epilogue 'residual': residual is [6, 4] fp32: expected [6, 5],"
                                        + " in memory that any thread may read",
                                wrong.getMessage());
                        next.set(first);
                        op.call(problem.a());
                    }
                });
    }

    @Test
    void ranksMustAgree() {
        Arena arena = Arena.ofAuto();
        Problem problem = Problem.create(arena, Shards.of(3, 3), 8, 5, DType.FP32, 1);
        Exception wrong =
                assertThrows(
                        IllegalArgumentException.class,
                        () ->
                                Ranks.run(
                                        2,
                                        fabric ->
                                                problem.on(fabric)
                                                        .epilogue(
                                                                fabric.rank() == 0
                                                                        ? Epilogue.none().relu()
                                                                        : Epilogue.none()
                                                                                .relu()
                                                                                .silu())
                                                        .prepare()));
        assertEquals(
                "the ranks prepare different operators: the epilogue (digits: 1 bias, 2 relu,"
                        + " 3 gelu, 4 gelu-tanh, 5 silu, 6 swiglu, 7 residual, 8 rmsnorm, 9"
                        + " layernorm) is 2 on rank 0 and 25 on rank 1",
                wrong.getMessage());
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "Bias", "bias,", "bias, gelu", "gelu_tanh", "none"})
    void unknownStepsAreRefused(String text) {
        Exception wrong =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> Epilogue.parse(text, () -> null, () -> null));
        assertTrue(
                wrong.getMessage()
                        .endsWith(
                                ": expected steps of bias, relu, gelu, gelu-tanh, silu, swiglu,"
                                        + " residual, rmsnorm, layernorm, with commas between"),
                wrong.getMessage());
    }

    @Test
    void aStepTwiceIsRefused() {
        Exception wrong =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> Epilogue.parse("relu,bias,relu", () -> null, () -> null));
        assertEquals(
                "epilogue 'relu,bias,relu' has two steps 'relu': expected one of each kind",
                wrong.getMessage());
    }

    @Test
    void textIsWhatParseReads() {
        assertEquals("", Epilogue.none().toString());
        assertEquals(
                "bias,gelu-tanh,residual",
                Epilogue.parse("bias,gelu-tanh,residual", () -> null, () -> null).toString());
    }

    @Test
    void operandsThatDoNotFitAreRefused() {
        Epilogue none = Epilogue.none();
        refused(
                none.bias(1, 2),
                List.of(3L),
                "epilogue 'bias': bias of product 0 is [1, 2] fp32: expected [1, 3]");
        Matrix three = Matrix.copyOf(Arena.ofAuto(), new float[][] {{1, 2, 3}});
        refused(
                none.bias(three, three, three),
                List.of(3L, 3L),
                "epilogue 'bias': 3 biases for 2 products: expected one for each, or one for all");
        refused(
                none.swiglu(),
                List.of(3L),
                "epilogue 'swiglu': swiglu of products with N = [3]: expected two of the same N");
        refused(
                none.relu().swiglu(),
                List.of(3L, 4L),
                "epilogue 'relu,swiglu': swiglu of products with N = [3, 4]: expected two of the"
                        + " same N");
        refused(
                none.residual(three).swiglu(),
                List.of(3L, 3L),
                "epilogue 'residual,swiglu': a residual for 2 products: expected one");
        refused(
                none.residual(() -> null),
                List.of(3L),
                "epilogue 'residual': residual is null: expected [4, 3], in memory that any thread"
                        + " may read");
        try (Arena confined = Arena.ofConfined()) {
            refused(
                    none.residual(Matrix.allocate(confined, DType.FP32, 4, 3)),
                    List.of(3L),
                    "epilogue 'residual': residual is [4, 3] fp32: expected [4, 3], in memory that"
                            + " any thread may read");
        }
    }

    private static void refused(Epilogue epilogue, List<Long> columns, String message) {
        Exception wrong =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> new PreparedEpilogue(epilogue.fitting(columns), 4));
        assertEquals(message, wrong.getMessage());
    }
}
