package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
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
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.Supplier;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Operators with an epilogue on a real GPU. */
@Tag("gpu")
class CudaEpilogueIT {

    private static final Duration DEADLINE = Duration.ofSeconds(5);

    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    /** The CPU's epilogue of the same GPU's products, for every way in which rows come. */
    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "MESH_PULL; bias,gelu; FP16; 1",
                "RING; bias,silu,residual; FP16; 1",
                "SEQUENTIAL; residual,relu; FP32; 1",
                "DIRECT; bias,swiglu,residual; FP16; 2",
                "AUTO; swiglu; FP32; 2",
                // Another type than that of A and B.
                "MESH_PUSH; gelu-tanh,bias; BF16; 2",
                "MESH_PULL; bias,residual,rmsnorm; FP16; 1",
                "RING; layernorm; FP32; 1",
                "SEQUENTIAL; swiglu,residual,rmsnorm; FP32; 2",
            })
    void resultIsTheEpilogueOfTheProducts(Algorithm algorithm, String text, DType out, int count) {
        check(builder -> builder.algorithm(algorithm), text, out, count);
    }

    @Test
    void shardsInTwoBuffersAndRowsThroughHostMemoryDoSoToo() {
        check(CudaAllGatherMatmulBuilder::pingPong, "bias,gelu", DType.FP16, 1);
        check(CudaAllGatherMatmulBuilder::staged, "silu,residual", DType.FP16, 1);
    }

    private interface Way {
        CudaAllGatherMatmulBuilder of(CudaAllGatherMatmulBuilder builder);
    }

    private void check(Way way, String text, DType out, int count) {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(3, DEADLINE)) {
            Shards shards = Shards.of(200, 0, 131);
            long k = 264;
            long n = 392;
            Random random = new Random(3);
            Matrix a = random(arena, shards.totalRows(), k, random);
            List<Matrix> bs = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                bs.add(random(arena, k, n, random));
            }
            Matrix bias = random(arena, 1, n, random);
            List<Matrix> residuals =
                    List.of(
                            random(arena, shards.totalRows(), n, random),
                            random(arena, shards.totalRows(), n, random));
            world.run(
                    fabric -> {
                        gpu.bind();
                        Matrix shard =
                                a.rows(shards.firstRow(fabric.rank()), shards.rows(fabric.rank()));
                        List<Matrix> sums = new ArrayList<>();
                        try (GpuStream stream = GpuStream.create();
                                CudaAllGatherMatmul op =
                                        described(fabric, shards, bs)
                                                .output(DType.FP32)
                                                .algorithm(Algorithm.SEQUENTIAL)
                                                .prepare()) {
                            op.nextShard().upload(shard, stream);
                            op.call(op.nextShard());
                            for (int i = 0; i < count; i++) {
                                sums.add(host(op.product(i), arena, stream));
                            }
                        }
                        List<DeviceMatrix> there = new ArrayList<>();
                        int[] call = {0};
                        try (GpuStream stream = GpuStream.create();
                                DeviceCheck check = new DeviceCheck(gpu)) {
                            residuals.forEach(r -> there.add(DeviceProblem.upload(r, stream)));
                            Epilogue device = epilogue(text, bias, () -> there.get(call[0] % 2));
                            fabric.barrier();
                            try (CudaAllGatherMatmul op =
                                    way.of(described(fabric, shards, bs).output(out))
                                            .epilogue(device)
                                            .prepare()) {
                                for (; call[0] < 3; call[0]++) {
                                    op.nextShard().upload(shard, stream);
                                    fabric.barrier();
                                    check.poison(op.product(0));
                                    op.call(op.nextShard());
                                    Matrix residual = residuals.get(call[0] % 2);
                                    Epilogue onHost = epilogue(text, bias, () -> residual);
                                    assertSame(onHost, text, sums, op, arena, stream);
                                    fabric.barrier();
                                }
                            }
                        }
                    });
        }
    }

    private static Epilogue epilogue(String text, Matrix bias, Supplier<?> residual) {
        return Epilogue.parse(text, () -> bias, residual, () -> bias, () -> bias, 1e-5);
    }

    private static void assertSame(
            Epilogue epilogue,
            String text,
            List<Matrix> sums,
            CudaAllGatherMatmul op,
            Arena arena,
            GpuStream stream) {
        List<Matrix> expected = new ArrayList<>();
        for (int i = 0; i < (text.contains("swiglu") ? 1 : sums.size()); i++) {
            DeviceMatrix c = op.product(i);
            expected.add(Matrix.allocate(arena, c.dtype(), c.rows(), c.cols()));
        }
        epilogue.apply(sums, expected);
        for (int i = 0; i < expected.size(); i++) {
            Matrix found = host(op.product(i), arena, stream);
            assertTrue(expected.get(i).bitwiseEquals(found), text);
        }
    }

    private CudaAllGatherMatmulBuilder described(Fabric fabric, Shards shards, List<Matrix> bs) {
        CudaAllGatherMatmulBuilder builder =
                CudaAllGatherMatmul.on(fabric, gpu).a(shards, DType.FP16).output(DType.FP16);
        bs.forEach(b -> builder.b(b, false));
        return builder;
    }

    private static Matrix random(Arena arena, long rows, long cols, Random random) {
        Matrix matrix = Matrix.allocate(arena, DType.FP16, rows, cols);
        DeviceProblem.fill(matrix, random);
        return matrix;
    }

    private static Matrix host(DeviceMatrix matrix, Arena arena, GpuStream stream) {
        Matrix host = Matrix.allocate(arena, matrix.dtype(), matrix.rows(), matrix.cols());
        matrix.download(host, stream);
        return host;
    }

    /** With the words of the CPU's operators; a residual must lie on the GPU. */
    @Test
    void whatDoesNotFitIsRefused() {
        try (Arena arena = Arena.ofShared()) {
            Matrix b = random(arena, 64, 48, new Random(1));
            assertRefused(
                    b,
                    Epilogue.none().bias(b),
                    "epilogue 'bias': bias of product 0 is [64, 48] fp16: expected [1, 48]");
            assertRefused(
                    b,
                    Epilogue.none().swiglu(),
                    "epilogue 'swiglu': swiglu of products with N = [48]: expected two of the same"
                            + " N");
            assertRefused(
                    b,
                    Epilogue.none().residual(b),
                    "epilogue 'residual': residual is [64, 48] fp16 in host memory: expected a"
                            + " DeviceMatrix [32, 48]");
        }
    }

    private void assertRefused(Matrix b, Epilogue epilogue, String message) {
        Exception wrong =
                assertThrows(
                        IllegalArgumentException.class,
                        () ->
                                CudaAllGatherMatmul.withHostPeers(gpu, 0)
                                        .a(Shards.even(32, 1), DType.FP16)
                                        .b(b, false)
                                        .epilogue(epilogue)
                                        .prepare());
        assertEquals(message, wrong.getMessage());
    }
}
