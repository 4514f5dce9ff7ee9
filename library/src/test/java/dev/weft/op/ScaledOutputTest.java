package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Ranks;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Results of 8 bits, whose rows have their scales in front. */
class ScaledOutputTest {

    private static final DType[] TYPES = {DType.E4M3, DType.E5M2};
    private static final Scaling[] SCALINGS = {Scaling.ROW, Scaling.BLOCK};

    /** As if the fp32 result had been quantized afterwards; calls of fewer rows, too. */
    @ParameterizedTest
    @MethodSource("dev.weft.op.OperatorKind#withAlgorithms")
    void rowsAreThoseOfTheResultQuantizedAfterwards(OperatorKind kind, String algorithm) {
        for (int ranks = 1; ranks <= 4; ranks++) {
            check(kind, algorithm, ranks, 31L * ranks + algorithm.hashCode());
        }
    }

    private static void check(OperatorKind kind, String algorithm, int ranks, long seed) {
        Random random = new Random(seed);
        long[] rows = random.longs(ranks, 0, 40).map(r -> r % 4 == 0 ? 0 : r).toArray();
        long n = 1 + random.nextInt(random.nextBoolean() ? 90 : 900);
        DType type = TYPES[random.nextInt(2)];
        Scaling scaling = SCALINGS[random.nextInt(2)];
        boolean normalized = random.nextBoolean();
        int workers = 1 + random.nextInt(3);
        int parts = random.nextInt(4);
        List<Shards> calls =
                List.of(
                        Shards.of(rows),
                        Shards.of(Arrays.stream(rows).map(r -> random.nextLong(r + 1)).toArray()));
        try (Arena arena = Arena.ofShared()) {
            Problem all = Problem.create(arena, calls.getFirst(), 24, n, DType.FP32, seed);
            Matrix weight = Matrix.allocate(arena, DType.FP32, 1, n);
            new NormalData(5, 1).fill(weight);
            Epilogue epilogue =
                    normalized ? Epilogue.none().rmsNorm(weight, 1e-5) : Epilogue.none().relu();
            Ranks.run(
                    ranks,
                    fabric -> {
                        MatmulBuilder<Matrix, ?> wide = kind.on(fabric, all, algorithm);
                        MatmulBuilder<Matrix, ?> small = kind.on(fabric, all, algorithm);
                        for (MatmulBuilder<Matrix, ?> each : List.of(wide, small)) {
                            each.engine("portable").computeWorkers(workers).epilogue(epilogue);
                            if (each instanceof AllGatherMatmulBuilder gather) {
                                gather.columnParts(parts);
                            }
                        }
                        try (Operator<Matrix> reference = wide.output(DType.FP32).prepare();
                                Operator<Matrix> scaled = small.output(type, scaling).prepare()) {
                            for (Shards shards : calls) {
                                Matrix input = kind.input(all.first(shards), fabric.rank());
                                Matrix expected =
                                        ScaledMatrix.rowsOf(
                                                arena,
                                                reference.call(input, shards).product(0),
                                                type,
                                                scaling);
                                Matrix c = scaled.call(input, shards).product(0);
                                assertTrue(
                                        shards.totalRows() == 0 || expected.bitwiseEquals(c),
                                        () ->
                                                "%s by %s, N %d, rows %s, seed %d"
                                                        .formatted(type, scaling, n, shards, seed));
                            }
                        }
                    });
        }
    }

    /**
     * All-reduce, norm and quantization in one call, and a gather that takes the rows as they are.
     */
    @Test
    void theNextOperatorTakesTheRows() {
        int ranks = 3;
        Shards rows = Shards.of(4, 0, 9);
        Shards k = Shards.of(10, 14, 8);
        for (Scaling scaling : SCALINGS) {
            try (Arena arena = Arena.ofShared()) {
                Matrix a = random(arena, 13, 32, 1);
                Matrix first = random(arena, 32, 160, 2);
                Matrix second = random(arena, 160, 24, 3);
                Matrix weight = random(arena, 1, 160, 4);
                ScaledMatrix b = ScaledMatrix.ofB(arena, second, false, DType.E4M3, scaling);
                Ranks.run(
                        ranks,
                        fabric -> {
                            int rank = fabric.rank();
                            Epilogue norm = Epilogue.none().rmsNorm(weight, 1e-6);
                            try (MatmulReduceScatter sums =
                                            MatmulReduceScatter.on(fabric)
                                                    .a(rows, k, DType.FP32)
                                                    .b(first.rows(k.firstRow(rank), k.rows(rank)))
                                                    .epilogue(norm)
                                                    .output(DType.E4M3, scaling)
                                                    .prepare();
                                    AllGatherMatmul gather =
                                            AllGatherMatmul.on(fabric)
                                                    .scaledA(rows, DType.E4M3, scaling)
                                                    .b(b, false)
                                                    .prepare()) {
                                Matrix part = a.block(0, 13, k.firstRow(rank), k.rows(rank));
                                Matrix scaled = sums.call(part).product();
                                Matrix c = gather.call(scaled).product();
                                assertTrue(
                                        expected(arena, a, first, weight, b, scaling)
                                                .bitwiseEquals(c));
                            }
                        });
            }
        }
    }

    /** One step after the other, on one rank. */
    private static Matrix expected(
            Arena arena,
            Matrix a,
            Matrix first,
            Matrix weight,
            ScaledMatrix second,
            Scaling scaling) {
        Shards alone = Shards.of(13);
        return Ranks.call(
                        1,
                        fabric -> {
                            try (AllGatherMatmul sums =
                                            AllGatherMatmul.on(fabric)
                                                    .a(alone, DType.FP32)
                                                    .b(first)
                                                    .epilogue(Epilogue.none().rmsNorm(weight, 1e-6))
                                                    .prepare();
                                    AllGatherMatmul last =
                                            AllGatherMatmul.on(fabric)
                                                    .scaledA(alone, DType.E4M3, scaling)
                                                    .b(second, false)
                                                    .prepare()) {
                                Matrix rows =
                                        ScaledMatrix.rowsOf(
                                                arena, sums.call(a).product(), DType.E4M3, scaling);
                                return last.call(rows).product().converted(arena, DType.FP32);
                            }
                        })
                .getFirst();
    }

    private static Matrix random(Arena arena, long rows, long cols, long stream) {
        Matrix matrix = Matrix.allocate(arena, DType.FP32, rows, cols);
        new NormalData(23, stream).fill(matrix);
        return matrix;
    }

    @Test
    void infinitiesNaNAndZeroesAreQuantizedLikeThoseOfAMatrix() {
        float[] row = {0, -0f, Float.NaN, Float.POSITIVE_INFINITY, 1e-44f, -3, 448, 1e30f};
        Arena arena = Arena.ofAuto();
        for (DType type : TYPES) {
            for (int count = 1; count <= row.length; count++) {
                float[] first = Arrays.copyOf(row, count);
                Matrix expected =
                        ScaledMatrix.rowsOf(
                                arena,
                                Matrix.copyOf(arena, new float[][] {first}),
                                type,
                                Scaling.ROW);
                Matrix found = Matrix.allocate(arena, type, 1, expected.cols());
                ScaledMatrix.quantizeRow(row, count, Scaling.ROW, found, 0);
                assertTrue(expected.bitwiseEquals(found), type + ", " + count);
            }
        }
    }

    @Test
    void whatCannotBeScaledIsRefused() {
        Ranks.run(
                1,
                fabric -> {
                    AllGatherMatmulBuilder builder = AllGatherMatmul.on(fabric);
                    assertEquals(
                            "products of bf16 with scales by row: expected e4m3 or e5m2, by row or block",
                            assertThrows(
                                            IllegalArgumentException.class,
                                            () -> builder.output(DType.BF16, Scaling.ROW))
                                    .getMessage());
                    assertThrows(
                            IllegalArgumentException.class,
                            () -> builder.output(DType.E4M3, Scaling.TENSOR));
                    assertThrows(IllegalArgumentException.class, () -> builder.output(DType.E4M3));
                });
    }
}
