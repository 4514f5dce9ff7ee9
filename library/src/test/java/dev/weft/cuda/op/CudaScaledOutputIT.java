package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.op.Epilogue;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Results of 8 bits on a GPU, whose rows have their scales in front. */
@Tag("gpu")
class CudaScaledOutputIT {

    private static final Duration DEADLINE = Duration.ofSeconds(10);
    private static final Shards ROWS = Shards.of(90, 0, 131);
    private static final Shards FEWER = Shards.of(3, 0, 8);
    private static final long K = 192;
    private static final Shards PARTS = Shards.of(64, 96, 32);

    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    private static Matrix random(Arena arena, DType type, long rows, long cols, int seed) {
        Matrix matrix = Matrix.allocate(arena, type, rows, cols);
        DeviceProblem.fill(matrix, new Random(seed));
        return matrix;
    }

    /** One operator with results of a type; of fp32 if {@code scaling} is null. */
    private interface Kind {
        CudaOperator prepare(DType type, Scaling scaling);
    }

    private Kind kind(String way, Fabric fabric, Matrix b, Epilogue epilogue) {
        return (type, scaling) -> {
            if (way.startsWith("gather")) {
                CudaAllGatherMatmulBuilder gather =
                        CudaAllGatherMatmul.on(fabric, gpu)
                                .a(ROWS, DType.BF16)
                                .b(b, false)
                                .epilogue(epilogue)
                                .algorithm(Algorithm.SEQUENTIAL);
                return (scaling == null ? gather.output(type) : gather.output(type, scaling))
                        .prepare();
            }
            long first = PARTS.firstRow(fabric.rank());
            CudaMatmulReduceBuilder sums =
                    CudaMatmulReduce.on(fabric, gpu, way.contains("all"))
                            .a(ROWS, PARTS, DType.BF16)
                            .b(b.rows(first, PARTS.rows(fabric.rank())), false)
                            .epilogue(epilogue)
                            .algorithm(Reduction.DIRECT);
            if (way.contains("staged")) {
                sums.algorithm(Reduction.CHAIN).staged();
            }
            return (scaling == null ? sums.output(type) : sums.output(type, scaling)).prepare();
        };
    }

    /** As if the result in fp32 had been quantized afterwards; in calls of fewer rows, too. */
    @ParameterizedTest
    @CsvSource({
        "gather, E4M3, ROW, 392, true",
        "gather, E5M2, BLOCK, 1000, false",
        "gather, E4M3, BLOCK, 17, false",
        "scatter, E4M3, BLOCK, 1000, true",
        "scatter, E5M2, ROW, 129, false",
        "all, E4M3, ROW, 520, true",
        "staged scatter, E4M3, BLOCK, 392, true",
        "staged all, E4M3, ROW, 128, false",
    })
    void rowsAreThoseOfTheResultQuantizedAfterwards(
            String way, DType type, Scaling scaling, long n, boolean normalized) {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(3, DEADLINE)) {
            Matrix a = random(arena, DType.BF16, ROWS.totalRows(), K, 1);
            // What rounds to nothing, and what is too large for some scale.
            a.set(0, 0, 3e38f);
            a.set(1, 1, 1e-38f);
            Matrix b = random(arena, DType.BF16, K, n, 2);
            Matrix weight = random(arena, DType.FP32, 1, n, 3);
            Epilogue epilogue =
                    normalized ? Epilogue.none().rmsNorm(weight, 1e-5) : Epilogue.none();
            world.run(
                    fabric -> {
                        gpu.bind();
                        Kind kind = kind(way, fabric, b, epilogue);
                        try (DeviceCheck check = new DeviceCheck(gpu);
                                CudaOperator wide = kind.prepare(DType.FP32, null);
                                CudaOperator small = kind.prepare(type, scaling)) {
                            for (Shards rows : new Shards[] {ROWS, FEWER, ROWS}) {
                                Matrix sums = call(wide, a, rows, fabric, arena, check);
                                Matrix found = call(small, a, rows, fabric, arena, check);
                                assertSame(
                                        ScaledMatrix.rowsOf(arena, sums, type, scaling),
                                        found,
                                        n,
                                        scaling);
                            }
                        }
                    });
        }
    }

    private static Matrix call(
            CudaOperator op, Matrix a, Shards rows, Fabric fabric, Arena arena, DeviceCheck check) {
        try (GpuStream stream = GpuStream.create()) {
            int rank = fabric.rank();
            DeviceMatrix to = op.nextShard(rows);
            Matrix own =
                    op instanceof CudaMatmulReduce
                            ? a.block(0, rows.totalRows(), PARTS.firstRow(rank), PARTS.rows(rank))
                            : a.rows(rows.firstRow(rank), rows.rows(rank));
            to.upload(own, stream);
            check.poison(op.product(0));
            fabric.barrier();
            DeviceMatrix c = op.callInPlace(View.PIPELINED, rows).product(0);
            Matrix result = Matrix.allocate(arena, c.dtype(), c.rows(), c.cols());
            c.download(result, stream);
            fabric.barrier();
            return result;
        }
    }

    /** Scales and elements; what else is in a row has no meaning, nor has the sign of a NaN. */
    private static void assertSame(Matrix expected, Matrix found, long n, Scaling scaling) {
        assertEquals(expected.describe(), found.describe());
        ScaledMatrix one = ScaledMatrix.inRows(expected, n, scaling);
        ScaledMatrix other = ScaledMatrix.inRows(found, n, scaling);
        for (long row = 0; row < expected.rows(); row++) {
            for (long col = 0; col < one.scales().cols(); col++) {
                assertEquals(one.scales().get(row, col), other.scales().get(row, col), "scale");
            }
            for (long col = 0; col < n; col++) {
                float value = one.values().get(row, col);
                assertEquals(value, other.values().get(row, col), "row " + row + ", " + col);
            }
        }
    }

    /** All-reduce, norm and quantization in one call, and a gather that takes the rows. */
    @Test
    void theNextOperatorTakesTheRows() {
        long n = 256;
        try (Arena arena = Arena.ofShared();
                World world = World.threads(3, DEADLINE)) {
            Matrix a = random(arena, DType.BF16, ROWS.totalRows(), K, 1);
            Matrix b = random(arena, DType.BF16, K, n, 2);
            Matrix weight = random(arena, DType.FP32, 1, n, 3);
            Matrix second = random(arena, DType.FP32, n, 136, 4);
            ScaledMatrix next = ScaledMatrix.ofB(arena, second, false, DType.E4M3, Scaling.ROW);
            world.run(
                    fabric -> {
                        gpu.bind();
                        Epilogue norm = Epilogue.none().rmsNorm(weight, 1e-6);
                        try (DeviceCheck check = new DeviceCheck(gpu);
                                CudaOperator sums =
                                        kind("scatter", fabric, b, norm)
                                                .prepare(DType.E4M3, Scaling.ROW);
                                CudaOperator gather =
                                        CudaAllGatherMatmul.on(fabric, gpu)
                                                .scaledA(ROWS, DType.E4M3, Scaling.ROW)
                                                .b(next, false)
                                                .prepare()) {
                            Matrix rows = call(sums, a, ROWS, fabric, arena, check);
                            DeviceMatrix scaled = sums.product(0);
                            DeviceMatrix c = gather.call(scaled).product(0);
                            Matrix found = Matrix.allocate(arena, DType.FP32, c.rows(), c.cols());
                            try (GpuStream stream = GpuStream.create()) {
                                c.download(found, stream);
                                fabric.barrier();
                                gather.nextShard().upload(rows, stream);
                                fabric.barrier();
                                c = gather.callInPlace(View.PIPELINED).product(0);
                                Matrix again =
                                        Matrix.allocate(arena, DType.FP32, c.rows(), c.cols());
                                c.download(again, stream);
                                assertTrue(again.bitwiseEquals(found));
                            }
                            assertTrue(Math.abs(found.get(0, 0)) > 0);
                            fabric.barrier();
                        }
                    });
        }
    }
}
