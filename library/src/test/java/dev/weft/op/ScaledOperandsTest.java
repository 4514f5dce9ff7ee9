package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Ranks;
import dev.weft.gemm.Float64Oracle;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.PackedB;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A and B of 8 bits with scales. */
class ScaledOperandsTest {

    /** Rows of A as they travel, B, and the product of what they stand for. */
    private record Problem(
            Shards shards,
            Scaling scaling,
            Matrix rows,
            ScaledMatrix b,
            boolean transposed,
            Matrix c) {

        static Problem of(Shards shards, long k, long n, Scaling scaling, DType out, long seed) {
            Arena arena = Arena.ofAuto();
            boolean transposed = seed % 2 == 0;
            Matrix a = Matrix.allocate(arena, DType.BF16, shards.totalRows(), k);
            new NormalData(seed, 0).fill(a);
            Matrix full =
                    Matrix.allocate(arena, DType.FP16, transposed ? n : k, transposed ? k : n);
            new NormalData(seed, 1).fill(full);
            DType bType = seed % 3 == 0 ? DType.E5M2 : DType.E4M3;
            Matrix rows = ScaledMatrix.rowsOf(arena, a, DType.E4M3, scaling);
            ScaledMatrix b = ScaledMatrix.ofB(arena, full, transposed, bType, scaling);
            Matrix wideA = ScaledMatrix.inRows(rows, k, scaling).dequantize(arena);
            Matrix wideB = b.dequantize(arena);
            Gemm gemm = Gemms.byName("scalar");
            PackedB packed = gemm.pack(wideB, transposed, arena);
            Matrix c = Matrix.allocate(arena, out, a.rows(), n);
            gemm.multiply(wideA, 0, a.rows(), packed, c, 0, gemm.scratch(k, n, arena));
            assertTrue(new Float64Oracle(wideA, wideB, transposed).check(c).withinBound());
            return new Problem(shards, scaling, rows, b, transposed, c);
        }

        Matrix shard(int rank) {
            return rows.rows(shards.firstRow(rank), shards.rows(rank));
        }

        AllGatherMatmulBuilder on(Fabric fabric) {
            return AllGatherMatmul.on(fabric)
                    .scaledA(shards, DType.E4M3, scaling)
                    .b(b, transposed)
                    .output(c.dtype());
        }
    }

    @ParameterizedTest
    @EnumSource(Algorithm.class)
    void bitsAreThoseOfTheWidenedMatrices(Algorithm algorithm) {
        for (Scaling scaling : Scaling.values()) {
            long seed = 31 * algorithm.ordinal() + scaling.ordinal();
            Random random = new Random(seed);
            int ranks = algorithm == Algorithm.AUTO ? 2 : 1 + random.nextInt(4);
            long[] rows = random.longs(ranks, 0, 90).map(r -> r % 4 == 0 ? 0 : r).toArray();
            Problem problem =
                    Problem.of(
                            Shards.of(rows),
                            1 + random.nextInt(300),
                            1 + random.nextInt(70),
                            scaling,
                            DType.UNSCALED.get(random.nextInt(3)),
                            seed);
            int chunkRows = 1 + random.nextInt(40);
            Ranks.run(
                    ranks,
                    fabric -> {
                        AllGatherMatmulBuilder builder =
                                problem.on(fabric)
                                        .algorithm(algorithm)
                                        .computeWorkers(2)
                                        .chunkRows(chunkRows)
                                        .columnParts(random.nextInt(3))
                                        .keepGathered();
                        try (AllGatherMatmul op = builder.prepare()) {
                            for (int call = 0; call < 3; call++) {
                                Result<Matrix> result = op.call(problem.shard(fabric.rank()));
                                String what = algorithm + " " + scaling + " seed " + seed;
                                assertTrue(result.product().bitwiseEquals(problem.c()), what);
                                Matrix gathered = result.gathered().orElseThrow();
                                assertTrue(gathered.bitwiseEquals(problem.rows()), what);
                            }
                        }
                    });
        }
    }

    @Test
    void epiloguesGetTheSums() {
        Problem problem = Problem.of(Shards.of(40, 0, 77), 150, 60, Scaling.BLOCK, DType.FP32, 8);
        Arena arena = Arena.ofAuto();
        Matrix expected = Matrix.allocate(arena, DType.BF16, 117, 60);
        Epilogue.none().gelu().apply(java.util.List.of(problem.c()), java.util.List.of(expected));
        Ranks.run(
                3,
                fabric -> {
                    try (AllGatherMatmul op =
                            problem.on(fabric)
                                    .output(DType.BF16)
                                    .epilogue(Epilogue.none().gelu())
                                    .algorithm(Algorithm.RING)
                                    .prepare()) {
                        Matrix c = op.call(problem.shard(fabric.rank())).product();
                        assertTrue(c.bitwiseEquals(expected));
                    }
                });
    }

    @Test
    void operandsWithoutScalesAreRefused() {
        Problem problem = Problem.of(Shards.of(3), 20, 5, Scaling.ROW, DType.FP32, 1);
        Matrix plain = Matrix.allocate(Arena.ofAuto(), DType.FP16, 20, 5);
        refused(
                "A of e4m3 without scales: expected scaledA(...)",
                fabric -> AllGatherMatmul.on(fabric).a(Shards.of(3), DType.E4M3).b(plain));
        refused(
                "A of e4m3 with B [20, 5] fp16: expected scales for both or for neither",
                fabric ->
                        AllGatherMatmul.on(fabric)
                                .scaledA(Shards.of(3), DType.E4M3, Scaling.ROW)
                                .b(plain));
        refused(
                "products of e4m3: expected fp32, fp16 or bf16",
                fabric -> problem.on(fabric).output(DType.E4M3));
        refused(
                "A of e5m2 with scales: expected e4m3",
                fabric ->
                        AllGatherMatmul.on(fabric).scaledA(Shards.of(3), DType.E5M2, Scaling.ROW));
    }

    private static void refused(
            String message, java.util.function.Function<Fabric, AllGatherMatmulBuilder> builder) {
        Ranks.run(
                1,
                fabric ->
                        assertEquals(
                                message,
                                assertThrows(
                                                IllegalArgumentException.class,
                                                () -> builder.apply(fabric).prepare())
                                        .getMessage()));
    }
}
