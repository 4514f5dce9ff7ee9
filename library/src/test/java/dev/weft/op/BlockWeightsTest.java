package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Ranks;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.PackedB;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.QuantizedMatrix;
import dev.weft.tensor.data.NormalData;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Operators whose B is in blocks have the bits of one product, however it is cut. */
class BlockWeightsTest {

    private static final Arena ARENA = Arena.ofAuto();

    private static Matrix normal(DType type, long seed, long rows, long cols) {
        Matrix matrix = Matrix.allocate(ARENA, type, rows, cols);
        new NormalData(seed, 7).fill(matrix);
        return matrix;
    }

    /** In Java, on one thread. */
    private static Matrix product(Matrix a, QuantizedMatrix b, DType type) {
        Gemm gemm = Gemms.ofBlocks("scalar", b.type());
        PackedB packed = gemm.pack(b.dequantize(ARENA), true, ARENA);
        packed.fill(b, 0, 1);
        Matrix c = Matrix.allocate(ARENA, type, a.rows(), b.rows());
        gemm.multiply(a, 0, a.rows(), packed, c, 0, gemm.scratch(b.cols(), b.rows(), ARENA));
        return c;
    }

    private static Shards cut(Random random, int ranks, long total, long unit) {
        long[] parts = new long[ranks];
        for (long left = total / unit; left > 0; left--) {
            parts[random.nextInt(ranks)] += unit;
        }
        return Shards.of(parts);
    }

    @Test
    void gathersHaveTheBitsOfOneProduct() {
        for (int i = 0; i < 12; i++) {
            long seed = 19L + i;
            Random random = new Random(seed);
            BlockType type = BlockType.MULTIPLIED.get(i % 3);
            DType aType = DType.UNSCALED.get(random.nextInt(3));
            DType cType = DType.UNSCALED.get(random.nextInt(3));
            int ranks = 1 + random.nextInt(4);
            long m = random.nextInt(70);
            Matrix a = normal(aType, seed, m, 512);
            QuantizedMatrix b =
                    QuantizedMatrix.ofB(
                            ARENA, normal(DType.FP32, 2, 1 + random.nextInt(90), 512), true, type);
            Matrix expected = product(a, b, cType);
            Shards shards = cut(random, ranks, m, 1);
            Algorithm[] algorithms = {Algorithm.RING, Algorithm.DIRECT, Algorithm.MESH_PUSH};
            Algorithm algorithm = algorithms[random.nextInt(3)];
            String engine = random.nextBoolean() ? "auto" : "scalar";
            Ranks.run(
                    ranks,
                    fabric -> {
                        try (Weights weights = Weights.pack(fabric, b, aType, engine);
                                Operator<Matrix> op =
                                        AllGatherMatmul.on(fabric)
                                                .a(shards, aType)
                                                .b(weights)
                                                .output(cType)
                                                .algorithm(algorithm)
                                                .prepare()) {
                            long first = shards.firstRow(fabric.rank());
                            op.nextShard().copyFrom(a.rows(first, shards.rows(fabric.rank())));
                            Matrix c = op.callInPlace(View.PIPELINED).product();
                            assertTrue(c.bitwiseEquals(expected), "seed " + seed);
                        }
                    });
        }
    }

    @Test
    void sumsHaveTheBitsOfOneProduct() {
        for (int i = 0; i < 12; i++) {
            long seed = 119L + i;
            Random random = new Random(seed);
            BlockType type = BlockType.MULTIPLIED.get(i % 3);
            DType aType = DType.UNSCALED.get(random.nextInt(3));
            int ranks = 1 + random.nextInt(4);
            long m = 1 + random.nextInt(50);
            long k = 2048;
            Matrix a = normal(aType, seed, m, k);
            QuantizedMatrix b =
                    QuantizedMatrix.ofB(
                            ARENA, normal(DType.FP32, 2, 1 + random.nextInt(70), k), true, type);
            Matrix expected = product(a, b, DType.FP32);
            Shards rows = cut(random, ranks, m, 1);
            Shards kParts = cut(random, ranks, k, type.elements());
            Reduction reduction = random.nextBoolean() ? Reduction.DIRECT : Reduction.CHAIN;
            boolean all = random.nextBoolean();
            Ranks.run(
                    ranks,
                    fabric -> {
                        long first = kParts.firstRow(fabric.rank());
                        long depth = kParts.rows(fabric.rank());
                        QuantizedMatrix own = b.block(0, b.rows(), first, depth);
                        try (Weights weights = Weights.pack(fabric, own, aType, "auto");
                                Operator<Matrix> op =
                                        sum(fabric, all, rows, kParts, aType, weights, reduction)) {
                            op.nextShard().copyFrom(a.block(0, m, first, depth));
                            Matrix c = op.callInPlace(View.PIPELINED).product();
                            long from = all ? 0 : rows.firstRow(fabric.rank());
                            long count = all ? m : rows.rows(fabric.rank());
                            assertTrue(c.bitwiseEquals(expected.rows(from, count)), "seed " + seed);
                        }
                    });
        }
    }

    private static Operator<Matrix> sum(
            Fabric fabric,
            boolean all,
            Shards rows,
            Shards kParts,
            DType aType,
            Weights weights,
            Reduction reduction) {
        return all
                ? MatmulAllReduce.on(fabric)
                        .a(rows, kParts, aType)
                        .b(weights)
                        .algorithm(reduction)
                        .prepare()
                : MatmulReduceScatter.on(fabric)
                        .a(rows, kParts, aType)
                        .b(weights)
                        .algorithm(reduction)
                        .prepare();
    }

    /** The choice needs a model of the engine, which is measured. */
    @Test
    void autoChoosesAnAlgorithm() {
        Matrix a = normal(DType.BF16, 3, 64, 256);
        Matrix wide = normal(DType.FP32, 4, 48, 256);
        QuantizedMatrix b = QuantizedMatrix.ofB(ARENA, wide, true, BlockType.Q8_0);
        Matrix expected = product(a, b, DType.FP32);
        Ranks.run(
                2,
                fabric -> {
                    try (Weights weights = Weights.pack(fabric, b, DType.BF16, "auto");
                            Operator<Matrix> op =
                                    AllGatherMatmul.on(fabric)
                                            .a(Shards.even(64, 2), DType.BF16)
                                            .b(weights)
                                            .prepare()) {
                        op.nextShard().copyFrom(a.rows(32L * fabric.rank(), 32));
                        assertTrue(
                                op.callInPlace(View.PIPELINED).product().bitwiseEquals(expected));
                    }
                });
    }

    @Test
    void whatDoesNotFitIsRefused() {
        Matrix wide = normal(DType.FP32, 4, 8, 256);
        QuantizedMatrix b = QuantizedMatrix.ofB(ARENA, wide, true, BlockType.Q4_0);
        QuantizedMatrix other = QuantizedMatrix.ofB(ARENA, wide, true, BlockType.Q4_K);
        assertEquals(
                "A of e4m3 with B [8, 256] q4_0: expected fp32, fp16 or bf16, and q8_0, q4_0 or q4_k",
                alone(fabric -> Weights.pack(fabric, b, DType.E4M3, "auto")));
        assertEquals(
                "engine 'openblas' does not multiply q4_0: expected auto, portable, native or scalar",
                alone(fabric -> Weights.pack(fabric, b, DType.FP32, "openblas")));
        assertEquals(
                "weights [8, 256] q4_0 transposed beside a B that is no weights: expected weights of"
                        + " the same blocks",
                alone(
                        fabric ->
                                AllGatherMatmul.on(fabric)
                                        .a(Shards.of(4), DType.FP32)
                                        .b(Weights.pack(fabric, b, DType.FP32, "auto"))
                                        .b(wide, true)
                                        .prepare()));
        assertTrue(
                alone(
                                fabric ->
                                        AllGatherMatmul.on(fabric)
                                                .a(Shards.of(4), DType.FP32)
                                                .b(Weights.pack(fabric, b, DType.FP32, "auto"))
                                                .b(Weights.pack(fabric, other, DType.FP32, "auto"))
                                                .prepare())
                        .startsWith(
                                "weights [8, 256] q4_0 transposed are packed for engine q4_0-"));
    }

    private interface Preparation {
        Object with(Fabric fabric);
    }

    private static String alone(Preparation preparation) {
        String[] message = new String[1];
        Ranks.run(
                1,
                fabric ->
                        message[0] =
                                assertThrows(
                                                IllegalArgumentException.class,
                                                () -> preparation.with(fabric))
                                        .getMessage());
        return message[0];
    }
}
