package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.fabric.World;
import dev.weft.gemm.Deviation;
import dev.weft.gemm.Float64Oracle;
import dev.weft.op.Epilogue;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.QuantizedMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** A B in blocks on the GPU. */
@Tag("gpu")
class CudaBlocksIT {

    private static final int MANY = 300;
    private static final List<Integer> ROWS = List.of(1, 7, 8, 9, 31, 32, 33, 100, 128, 129);

    private final Arena arena = Arena.ofShared();
    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    @AfterEach
    void freeMatrices() {
        arena.close();
    }

    private Matrix random(DType type, long rows, long cols, int seed) {
        Matrix matrix = Matrix.allocate(arena, type, rows, cols);
        DeviceProblem.fill(matrix, new Random(seed));
        return matrix;
    }

    private QuantizedMatrix blocks(BlockType type, long n, long k, int seed) {
        return QuantizedMatrix.ofB(arena, random(DType.FP32, n, k, seed), true, type);
    }

    private CudaAllGatherMatmul operator(CudaWeights b, Shards shards, DType in, DType out) {
        return CudaAllGatherMatmul.withHostPeers(gpu, 0)
                .a(shards, in)
                .b(b)
                .output(out)
                .algorithm(Algorithm.MESH_PULL)
                .deadline(Duration.ofSeconds(5))
                .prepare();
    }

    /** The first rows of {@code a}, some of which a peer has. */
    private static DeviceMatrix call(
            CudaAllGatherMatmul op, Matrix a, Shards shards, DeviceCheck check) {
        try (GpuStream stream = GpuStream.create()) {
            op.peerShard(1, shards).copyFrom(a.rows(shards.rows(0), shards.rows(1)));
            op.nextShard(shards).upload(a.rows(0, shards.rows(0)), stream);
            check.poison(op.product(0));
            return op.callInPlace(View.PIPELINED, shards).product(0);
        }
    }

    private Matrix download(DeviceMatrix from) {
        Matrix to = Matrix.allocate(arena, from.dtype(), from.rows(), from.cols());
        try (GpuStream stream = GpuStream.create()) {
            from.download(to, stream);
        }
        return to;
    }

    private static void assertWithin(Float64Oracle oracle, Matrix c) {
        Deviation deviation = oracle.check(c);
        assertTrue(deviation.withinBound(), deviation.describe());
    }

    /** Columns and K that no tile and no stage divides, more stages than there are and fewer. */
    @ParameterizedTest
    @CsvSource({
        "Q8_0, 32, 1, FP16, FP16",
        "Q8_0, 4096, 200, BF16, FP32",
        "Q8_0, 1056, 9000, FP16, FP32",
        "Q4_0, 32, 17, BF16, FP32",
        "Q4_0, 4096, 200, FP16, FP16",
        "Q4_0, 1056, 9000, BF16, BF16",
        "Q4_K, 256, 65, FP16, FP32",
        "Q4_K, 4096, 200, BF16, BF16",
        "Q4_K, 1280, 9000, FP16, FP32",
    })
    void productsAreRightAndHaveTheSameBitsAmongAnyRows(
            BlockType type, long k, long n, DType in, DType out) {
        QuantizedMatrix b = blocks(type, n, k, 3);
        Matrix a = random(in, MANY, k, 4);
        Shards many = Shards.of(90, MANY - 90);
        try (DeviceCheck check = new DeviceCheck(gpu);
                CudaWeights weights = CudaWeights.copyOf(gpu, b);
                CudaAllGatherMatmul reference = operator(weights, many, in, out)) {
            Matrix all = download(call(reference, a, many, check));
            assertWithin(new Float64Oracle(a, b.dequantize(arena), true), all);
            for (int rows : ROWS) {
                Shards few = Shards.of(rows / 4, rows - rows / 4);
                String what = rows + " rows";
                assertSame(all, download(call(reference, a, few, check)), what + " of many");
                try (CudaAllGatherMatmul op = operator(weights, few, in, out)) {
                    assertSame(all, download(call(op, a, few, check)), what);
                    Matrix one = download(call(op, a, Shards.of(0, 1), check));
                    assertSame(all, one, "one of " + what);
                }
            }
        }
    }

    private static void assertSame(Matrix all, Matrix found, String what) {
        assertEquals(
                -1,
                all.rows(0, found.rows())
                        .data()
                        .asSlice(0, found.data().byteSize())
                        .mismatch(found.data()),
                what);
    }

    /** The bound of the test before this one finds one scale of many that is wrong. */
    @ParameterizedTest
    @EnumSource(names = {"Q8_0", "Q4_0", "Q4_K"})
    void aWrongScaleIsFound(BlockType type) {
        QuantizedMatrix b = blocks(type, 100, 1024, 3);
        Matrix a = random(DType.FP16, 8, 1024, 4);
        Matrix expected = b.dequantize(arena);
        long at = b.offset(50, 512);
        short scale = b.data().get(ValueLayout.JAVA_SHORT_UNALIGNED, at);
        float other = Float.float16ToFloat(scale) * 1.5f;
        b.data().set(ValueLayout.JAVA_SHORT_UNALIGNED, at, Float.floatToFloat16(other));
        Shards shards = Shards.of(4, 4);
        try (DeviceCheck check = new DeviceCheck(gpu);
                CudaWeights weights = CudaWeights.copyOf(gpu, b);
                CudaAllGatherMatmul op = operator(weights, shards, DType.FP16, DType.FP32)) {
            Matrix c = download(call(op, a, shards, check));
            assertFalse(new Float64Oracle(a, expected, true).check(c).withinBound());
        }
    }

    /** Ranks as threads, with an epilogue, by every kind of plan. */
    @ParameterizedTest
    @EnumSource(names = {"DIRECT", "RING", "MESH_PULL", "MESH_PUSH", "SEQUENTIAL"})
    void ranksThatShareTheGpuHaveTheSameBits(Algorithm algorithm) {
        QuantizedMatrix b = blocks(BlockType.Q4_0, 320, 512, 5);
        Matrix a = random(DType.BF16, 150, 512, 6);
        Shards shards = Shards.of(20, 130);
        List<Matrix> results = new CopyOnWriteArrayList<>();
        try (CudaWeights weights = CudaWeights.copyOf(gpu, b)) {
            for (Shards spread : List.of(Shards.of(150, 0), shards)) {
                try (World world = World.threads(2, Duration.ofSeconds(20))) {
                    world.run(
                            fabric -> {
                                gpu.bind();
                                int rank = fabric.rank();
                                try (GpuStream stream = GpuStream.create();
                                        CudaAllGatherMatmul op =
                                                CudaAllGatherMatmul.on(fabric, gpu)
                                                        .a(spread, DType.BF16)
                                                        .b(weights)
                                                        .output(DType.BF16)
                                                        .epilogue(Epilogue.none().relu())
                                                        .algorithm(algorithm)
                                                        .prepare()) {
                                    long rows = spread.rows(rank);
                                    Matrix own = a.rows(spread.firstRow(rank), rows);
                                    op.nextShard().upload(own, stream);
                                    op.callInPlace(View.PIPELINED);
                                    results.add(download(op.product(0)));
                                }
                            });
                }
            }
        }
        assertEquals(4, results.size());
        results.forEach(result -> assertSame(results.getFirst(), result, algorithm.toString()));
    }

    @Test
    void weightsAreReplaced() {
        QuantizedMatrix first = blocks(BlockType.Q4_K, 130, 512, 1);
        QuantizedMatrix second = blocks(BlockType.Q4_K, 130, 512, 2);
        Matrix a = random(DType.FP16, 5, 512, 3);
        Shards shards = Shards.of(2, 3);
        try (DeviceCheck check = new DeviceCheck(gpu);
                CudaWeights weights = CudaWeights.copyOf(gpu, first);
                CudaAllGatherMatmul op = operator(weights, shards, DType.FP16, DType.FP32)) {
            Matrix before = download(call(op, a, shards, check));
            assertWithin(new Float64Oracle(a, first.dequantize(arena), true), before);
            weights.replace(second);
            Matrix after = download(call(op, a, shards, check));
            assertWithin(new Float64Oracle(a, second.dequantize(arena), true), after);
            QuantizedMatrix other = blocks(BlockType.Q4_0, 130, 512, 2);
            assertRefused(
                    "the B of these weights is to be replaced by [130, 512] q4_0: expected"
                            + " [130, 512] q4_k, as it was given",
                    () -> weights.replace(other));
        }
    }

    @Test
    void whatHasNoKernelIsRefused() {
        QuantizedMatrix b = blocks(BlockType.Q8_0, 64, 64, 1);
        Shards shards = Shards.of(2, 3);
        try (CudaWeights weights = CudaWeights.copyOf(gpu, b)) {
            assertRefused(
                    "weights [64, 64] q8_0 in engine cublas: expected fp16 or bf16",
                    () ->
                            CudaAllGatherMatmul.withHostPeers(gpu, 0)
                                    .a(shards, DType.FP16)
                                    .b(weights)
                                    .engine("cublas")
                                    .prepare());
            assertRefused(
                    "weights [64, 64] q8_0 in sums over ranks on a GPU: expected fp16 or bf16",
                    () ->
                            CudaMatmulReduce.withHostPeers(gpu, 1, true)
                                    .a(shards, Shards.of(32, 32), DType.FP16)
                                    .algorithm(Reduction.CHAIN)
                                    .b(weights));
            assertThrows(
                    IllegalArgumentException.class,
                    () ->
                            CudaAllGatherMatmul.withHostPeers(gpu, 0)
                                    .scaledA(shards, DType.E4M3, Scaling.ROW)
                                    .b(weights)
                                    .prepare());
        }
        QuantizedMatrix wide = QuantizedMatrix.allocate(arena, BlockType.Q6_K, 2, 256);
        assertRefused(
                "weights [2, 256] q6_k: expected q8_0, q4_0 or q4_k",
                () -> CudaWeights.copyOf(gpu, wide));
    }

    private static void assertRefused(String message, Runnable what) {
        IllegalArgumentException refusal = assertThrows(IllegalArgumentException.class, what::run);
        assertEquals(message, refusal.getMessage());
    }
}
