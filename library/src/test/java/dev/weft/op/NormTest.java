package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Ranks;
import dev.weft.gemm.Gemms;
import dev.weft.plan.Reduction;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Rows that an epilogue normalizes. */
class NormTest {

    private static final double EPSILON = 1e-5;
    private static final int CALLS = 4;

    private static Matrix random(Arena arena, DType type, long rows, long cols, long stream) {
        Matrix matrix = Matrix.allocate(arena, type, rows, cols);
        new NormalData(17, stream).fill(matrix);
        return matrix;
    }

    /** The definition, one operation after the other. */
    private static void normalize(
            float[] x, boolean layer, Matrix weight, Matrix bias, double epsilon) {
        double mean = layer ? sum(widened(x)) / x.length : 0;
        double[] squares = new double[x.length];
        for (int i = 0; i < x.length; i++) {
            double d = x[i] - mean;
            squares[i] = d * d;
        }
        double scale = 1 / Math.sqrt(sum(squares) / x.length + epsilon);
        for (int i = 0; i < x.length; i++) {
            double y = (x[i] - mean) * scale * weight.get(0, i);
            x[i] = (float) (layer ? y + bias.get(0, i) : y);
        }
    }

    private static double[] widened(float[] x) {
        double[] wide = new double[x.length];
        Arrays.setAll(wide, i -> x[i]);
        return wide;
    }

    private static double sum(double[] x) {
        double[] sums = new double[512];
        for (int i = 0; i < x.length; i++) {
            sums[i % 512] += x[i];
        }
        for (int apart = 256; apart > 0; apart /= 2) {
            for (int i = 0; i < apart; i++) {
                sums[i] += sums[i + apart];
            }
        }
        return sums[0];
    }

    /** What an epilogue adds and multiplies by. */
    private record Operands(Matrix bias, Matrix residual, Matrix weight, Matrix normBias) {

        static Operands of(Arena arena, Random random, long rows, long cols) {
            return new Operands(
                    random(arena, type(random), 1, cols, 2),
                    random(arena, type(random), rows, cols, 3),
                    random(arena, type(random), 1, cols, 4),
                    random(arena, type(random), 1, cols, 5));
        }

        private static DType type(Random random) {
            return DType.UNSCALED.get(random.nextInt(DType.UNSCALED.size()));
        }

        Epilogue epilogue(String text, AtomicReference<Matrix> rows) {
            return text.isEmpty()
                    ? Epilogue.none()
                    : Epilogue.parse(
                            text, () -> bias, rows::get, () -> weight, () -> normBias, EPSILON);
        }

        /** The steps applied to fp32 sums, row by row. */
        Matrix expected(String text, Matrix sums, Matrix residualRows, DType out) {
            Arena arena = Arena.ofAuto();
            int end = Math.max(0, text.lastIndexOf(','));
            Matrix before = Matrix.allocate(arena, DType.FP32, sums.rows(), sums.cols());
            epilogue(text.substring(0, end), new AtomicReference<>(residualRows))
                    .apply(List.of(sums), List.of(before));
            Matrix expected = Matrix.allocate(arena, out, sums.rows(), sums.cols());
            for (long row = 0; row < sums.rows(); row++) {
                float[] x = new float[(int) sums.cols()];
                for (int col = 0; col < x.length; col++) {
                    x[col] = before.get(row, col);
                }
                normalize(x, text.endsWith("layernorm"), weight, normBias, EPSILON);
                for (int col = 0; col < x.length; col++) {
                    expected.set(row, col, x[col]);
                }
            }
            return expected;
        }
    }

    private static final String[] TEXTS = {
        "rmsnorm", "layernorm", "bias,residual,rmsnorm", "bias,gelu,layernorm", "residual,layernorm"
    };

    /**
     * Every operator, 1 to 4 ranks, uneven and empty shards, workers, parts of columns and chunks,
     * calls of fewer rows.
     */
    @ParameterizedTest
    @MethodSource("dev.weft.op.OperatorKind#withAlgorithms")
    void bitsAreThoseOfTheDefinition(OperatorKind kind, String algorithm) {
        for (int ranks = 1; ranks <= 4; ranks++) {
            for (int i = 0; i < (algorithm.equals("auto") ? 1 : 3); i++) {
                check(kind, algorithm, ranks, 100L * i + ranks + algorithm.hashCode());
            }
        }
    }

    private static void check(OperatorKind kind, String algorithm, int ranks, long seed) {
        Random random = new Random(seed);
        long[] rows = random.longs(ranks, 0, 50).map(r -> r % 4 == 0 ? 0 : r).toArray();
        Shards most = Shards.of(rows);
        long n = 1 + random.nextInt(random.nextBoolean() ? 90 : 1300);
        String text = TEXTS[random.nextInt(TEXTS.length)];
        DType out = DType.UNSCALED.get(random.nextInt(3));
        int workers = 1 + random.nextInt(3);
        int parts = random.nextInt(4);
        int chunkRows = random.nextBoolean() ? 0 : 1 + random.nextInt(30);
        List<Shards> calls = new ArrayList<>(List.of(most));
        for (int i = 1; i < CALLS; i++) {
            calls.add(Shards.of(Arrays.stream(rows).map(r -> random.nextLong(r + 1)).toArray()));
        }
        String what = "%s to %s, N %d, seed %d".formatted(text, out, n, seed);
        try (Arena arena = Arena.ofShared()) {
            Problem all = Problem.create(arena, most, 24, n, DType.FP32, seed);
            Operands operands = Operands.of(arena, random, most.totalRows(), n);
            Ranks.run(
                    ranks,
                    fabric -> {
                        AtomicReference<Matrix> residual = new AtomicReference<>();
                        residual.set(residual(operands, kind, most, fabric.rank()));
                        MatmulBuilder<Matrix, ?> builder =
                                kind.on(fabric, all, algorithm)
                                        .output(out)
                                        .engine("portable")
                                        .computeWorkers(workers)
                                        .epilogue(operands.epilogue(text, residual));
                        if (chunkRows > 0) {
                            builder.chunkRows(chunkRows);
                        }
                        if (builder instanceof AllGatherMatmulBuilder gather) {
                            gather.columnParts(parts);
                        }
                        try (Operator<Matrix> operator = builder.prepare()) {
                            for (Shards shards : calls) {
                                Problem problem = all.first(shards);
                                residual.set(residual(operands, kind, shards, fabric.rank()));
                                Matrix input = kind.input(problem, fabric.rank());
                                Matrix c = operator.call(input, shards).product(0);
                                Matrix sums = sums(kind, algorithm, fabric, problem);
                                Matrix expected =
                                        operands.expected(text, sums, residual.get(), out);
                                assertTrue(
                                        shards.totalRows() == 0 || expected.bitwiseEquals(c),
                                        () -> what + ", rows " + shards);
                            }
                        }
                    });
        }
    }

    private static Matrix residual(Operands operands, OperatorKind kind, Shards shards, int rank) {
        return kind == OperatorKind.SCATTER
                ? operands.residual().rows(shards.firstRow(rank), shards.rows(rank))
                : operands.residual().rows(0, shards.totalRows());
    }

    /** The rows of the whole product, or of the sums of its parts if they are added by rank. */
    private static Matrix sums(
            OperatorKind kind, String algorithm, Fabric fabric, Problem problem) {
        boolean auto = algorithm.equals("auto");
        if (kind == OperatorKind.GATHER
                || auto
                || Reduction.of(algorithm).order() == Order.WHOLE
                || problem.shards().totalRows() == 0) {
            return kind.expected(problem, fabric.rank());
        }
        try (Operator<Matrix> plain =
                kind.on(fabric, problem, algorithm).engine("portable").prepare()) {
            Matrix product = plain.call(kind.input(problem, fabric.rank())).product(0);
            return product.converted(Arena.ofAuto(), DType.FP32);
        }
    }

    /** Two products that swiglu joins, whose columns three threads share. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    void joinedProductsAreNormalized(int parts) {
        Arena arena = Arena.ofAuto();
        Shards shards = Shards.of(9, 0, 21);
        Problem gate = Problem.create(arena, shards, 40, 700, DType.FP32, 1);
        Matrix up = random(arena, DType.FP32, 40, 700, 9);
        Matrix upSums = Problem.unfused(Gemms.portable(), arena, gate.a(), up, false, DType.FP32);
        Matrix joined = Matrix.allocate(arena, DType.FP32, 30, 700);
        Epilogue.none().swiglu().apply(List.of(gate.unfused(), upSums), List.of(joined));
        Operands operands = Operands.of(arena, new Random(2), 30, 700);
        Matrix expected = operands.expected("rmsnorm", joined, null, DType.BF16);
        Ranks.run(
                3,
                fabric -> {
                    try (AllGatherMatmul op =
                            gate.on(fabric)
                                    .b(up)
                                    .output(DType.BF16)
                                    .engine("portable")
                                    .columnParts(parts)
                                    .computeWorkers(3)
                                    .epilogue(
                                            Epilogue.none()
                                                    .swiglu()
                                                    .rmsNorm(operands.weight(), EPSILON))
                                    .prepare()) {
                        for (View view : View.values()) {
                            op.nextShard().copyFrom(gate.shard(fabric.rank()));
                            op.callInPlace(view);
                        }
                        Matrix c = op.call(gate.shard(fabric.rank())).product();
                        assertTrue(expected.bitwiseEquals(c));
                    }
                });
    }

    /** Of sums of any kind, within a unit in the last place of sums in another order. */
    @ParameterizedTest
    @CsvSource({"1, 1", "7, 0", "64, 1e-5", "511, 1e-6", "513, 1e-5", "4096, 1e-5", "5003, 1e-12"})
    void resultsAreThoseOfFloat64(int cols, double epsilon) {
        Random random = new Random(cols);
        Arena arena = Arena.ofAuto();
        Matrix sums = Matrix.allocate(arena, DType.FP32, 12, cols);
        for (int row = 0; row < 12; row++) {
            double size = Math.pow(10, random.nextInt(40) - 30.0);
            double middle = row % 3 == 0 ? 0 : random.nextGaussian() * size * row;
            for (int col = 0; col < cols; col++) {
                sums.set(row, col, (float) (middle + size * random.nextGaussian()));
            }
        }
        Operands operands = Operands.of(arena, random, 1, cols);
        for (boolean layer : new boolean[] {false, true}) {
            Matrix found = Matrix.allocate(arena, DType.FP32, 12, cols);
            norm(layer, operands, epsilon).apply(List.of(sums), List.of(found));
            for (int row = 0; row < 12; row++) {
                double mean = 0;
                for (int col = cols - 1; layer && col >= 0; col--) {
                    mean += sums.get(row, col) / (double) cols;
                }
                double square = 0;
                double largest = 0;
                for (int col = cols - 1; col >= 0; col--) {
                    square += Math.pow(sums.get(row, col) - mean, 2) / cols;
                    largest = Math.max(largest, Math.abs(sums.get(row, col)));
                }
                double root = Math.sqrt(square + epsilon);
                for (int col = 0; col < cols; col++) {
                    double weight = operands.weight().get(0, col);
                    double scaled = (sums.get(row, col) - mean) / root * weight;
                    double right = scaled + (layer ? operands.normBias().get(0, col) : 0);
                    // Of the mean, of which little may be left in a difference.
                    double lost = 0x1p-48 * (Math.abs(weight) * largest / root + Math.abs(scaled));
                    double error = Math.abs(found.get(row, col) - right);
                    assertTrue(
                            error <= Math.ulp((float) right) + lost || Double.isNaN(right),
                            "%s of %d, row %d: %s, expected %s"
                                    .formatted(layer, cols, row, found.get(row, col), right));
                }
            }
        }
    }

    private static Epilogue norm(boolean layer, Operands operands, double epsilon) {
        return layer
                ? Epilogue.none().layerNorm(operands.weight(), operands.normBias(), epsilon)
                : Epilogue.none().rmsNorm(operands.weight(), epsilon);
    }

    @Test
    void zeroesInfinitiesAndNaNAreThoseOfTheFormula() {
        Matrix one = Matrix.copyOf(Arena.ofAuto(), new float[][] {{1, 1}});
        float infinity = Float.POSITIVE_INFINITY;
        Matrix sums =
                Matrix.copyOf(
                        Arena.ofAuto(),
                        new float[][] {{0, -0f}, {infinity, 1}, {Float.NaN, 1}, {3e38f, -3e38f}});
        Matrix c = Matrix.allocate(Arena.ofAuto(), DType.FP32, 4, 2);
        Epilogue.none().rmsNorm(one, EPSILON).apply(List.of(sums), List.of(c));
        float[][] expected = {{0, -0f}, {Float.NaN, 0}, {Float.NaN, Float.NaN}, {1, -1}};
        for (int row = 0; row < 4; row++) {
            for (int col = 0; col < 2; col++) {
                assertEquals(expected[row][col], c.get(row, col), row + ", " + col);
            }
        }
        Epilogue.none().rmsNorm(one, 0).apply(List.of(sums.rows(0, 1)), List.of(c.rows(0, 1)));
        assertEquals(Float.NaN, c.get(0, 0));
    }

    @Test
    void ranksMustAgreeOnEpsilon() {
        Arena arena = Arena.ofAuto();
        Problem problem = Problem.create(arena, Shards.of(3, 3), 8, 5, DType.FP32, 1);
        Matrix weight = random(arena, DType.FP32, 1, 5, 4);
        Exception wrong =
                assertThrows(
                        IllegalArgumentException.class,
                        () ->
                                Ranks.run(
                                        2,
                                        fabric ->
                                                problem.on(fabric)
                                                        .epilogue(
                                                                Epilogue.none()
                                                                        .rmsNorm(
                                                                                weight,
                                                                                fabric.rank()))
                                                        .prepare()));
        assertEquals(
                "the ranks prepare different operators: the norm's epsilon (as the bits of a"
                        + " float64) is 0 on rank 0 and 4607182418800017408 on rank 1",
                wrong.getMessage());
    }

    @Test
    void whatDoesNotFitIsRefused() {
        Matrix three = random(Arena.ofAuto(), DType.FP32, 1, 3, 0);
        Epilogue norm = Epilogue.none().rmsNorm(three, EPSILON);
        refused(
                norm::relu,
                "epilogue 'rmsnorm,relu' has a step after 'rmsnorm': expected the norm to be the"
                        + " last one");
        refused(
                () -> norm.layerNorm(three, three, EPSILON),
                "epilogue 'rmsnorm,layernorm' has a step after 'rmsnorm': expected the norm to be"
                        + " the last one");
        refused(
                () -> norm.fitting(List.of(4L)),
                "epilogue 'rmsnorm': weight of rmsnorm is [1, 3] fp32: expected [1, 4]");
        refused(
                () ->
                        Epilogue.none()
                                .layerNorm(three, three.block(0, 1, 0, 2), EPSILON)
                                .fitting(List.of(3L)),
                "epilogue 'layernorm': bias of layernorm is [1, 2] fp32: expected [1, 3]");
        refused(
                () -> norm.fitting(List.of(3L, 3L)),
                "epilogue 'rmsnorm': rmsnorm of 2 products: expected one");
        refused(
                () -> Epilogue.none().rmsNorm(three, -1),
                "epsilon of rmsnorm is -1.0: expected 0 or more");
        refused(
                () -> Epilogue.none().rmsNorm(three, Double.NaN),
                "epsilon of rmsnorm is NaN: expected 0 or more");
        refused(
                () -> Epilogue.parse("relu,rmsnorm", () -> null, () -> null),
                "epilogue 'relu,rmsnorm' has a norm without a weight: expected one, and epsilon");
    }

    private static void refused(Runnable what, String message) {
        Exception wrong = assertThrows(IllegalArgumentException.class, what::run);
        assertEquals(message, wrong.getMessage());
    }
}
