package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.kernel.KernelFamily;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.gemm.Deviation;
import dev.weft.gemm.Float64Oracle;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.PackedB;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The bits of the product of the Helion calls on a GPU, by type, size and tiling. */
@Tag("gpu")
class HelionCudaProductIT extends HelionOnGpu {

    /** Gathered A is exact, and C has the bits of the CPU's product: both add k by k. */
    @ParameterizedTest
    @CsvSource({
        "1, FP32, FP32, false, 70, 33, 45",
        "2, FP32, FP32, true, 130, 100, 131",
        "3, FP16, BF16, false, 65, 77, 129",
        "2, BF16, FP16, true, 129, 64, 64",
        "4, BF16, FP32, false, 33, 200, 17",
        "2, FP32, FP16, true, 40, 1, 1",
        "2, BF16, BF16, false, 150, 67, 133",
        "3, FP16, FP16, true, 31, 129, 260",
        "2, BF16, BF16, false, 96, 64, 129",
    })
    void anyTypesAndSizesHaveTheBitsOfTheCpusProduct(
            int ranks, DType aType, DType bType, boolean transposed, long rows, long k, long n) {
        Arena arena = Arena.ofAuto();
        Matrix a = normal(arena, aType, rows * ranks, k, 0);
        Matrix b = normal(arena, bType, transposed ? n : k, transposed ? k : n, 1);
        DType type = DType.promote(aType, bType);
        Matrix golden = cpuProduct(arena, a, b, transposed, type);
        int splits = rows * k % 3 == 0 ? 3 : 1;
        try (World world = World.threads(ranks, DEADLINE)) {
            world.run(
                    fabric -> {
                        gpu.bind();
                        try (GpuStream stream = GpuStream.create();
                                DeviceBuffer bMemory = DeviceBuffer.allocate(b.elementBytes());
                                HelionShared<DeviceMatrix> shared =
                                        HelionCuda.empty(fabric, gpu, rows, k, aType)) {
                            shared.local().upload(a.rows(fabric.rank() * rows, rows), stream);
                            DeviceMatrix onGpu =
                                    new DeviceMatrix(
                                            bMemory.address(), bType, b.rows(), b.cols(), b.cols());
                            onGpu.upload(b, stream);
                            try (HelionResult<DeviceMatrix> result =
                                    HelionCuda.allGatherMatmul(
                                            fabric,
                                            gpu,
                                            shared,
                                            onGpu,
                                            transposed,
                                            null,
                                            null,
                                            splits,
                                            stream)) {
                                result.await();
                                assertEquals(type, result.c().dtype());
                                assertTrue(download(arena, result.aOut(), stream).bitwiseEquals(a));
                                Matrix c = download(arena, result.c(), stream);
                                if (KernelFamily.suitTensorCores(result.aOut(), onGpu, type)) {
                                    Deviation deviation =
                                            new Float64Oracle(a, b, transposed).check(c, 0, 5);
                                    assertTrue(deviation.withinBound(), deviation.describe());
                                } else {
                                    assertTrue(c.bitwiseEquals(golden), "bits of the CPU");
                                }
                            }
                        }
                    });
        }
    }

    private static Matrix normal(Arena arena, DType dtype, long rows, long cols, long stream) {
        Matrix matrix = Matrix.allocate(arena, dtype, rows, cols);
        new NormalData(5, stream).fill(matrix);
        return matrix;
    }

    private static Matrix cpuProduct(Arena arena, Matrix a, Matrix b, boolean trans, DType type) {
        Gemm gemm = Gemms.byName("scalar");
        PackedB packed = gemm.pack(b, trans, arena);
        Matrix c = Matrix.allocate(arena, type, a.rows(), packed.n());
        gemm.multiply(a, 0, a.rows(), packed, c, 0, gemm.scratch(a.cols(), packed.n(), arena));
        return c;
    }

    private static Matrix download(Arena arena, DeviceMatrix from, GpuStream stream) {
        Matrix to = Matrix.allocate(arena, from.dtype(), from.rows(), from.cols());
        from.download(to, stream);
        return to;
    }

    /** The source's own test at its own size, held to the bits of the fused operator. */
    @ParameterizedTest
    @ValueSource(ints = {4, 8})
    void theOriginalsTestAtItsFullSize(int ranks) {
        long m = 4096;
        long n = 6656;
        long k = 16384;
        try (World world = World.threads(ranks, DEADLINE);
                DeviceCheck check = new DeviceCheck(gpu);
                DeviceBuffer aMemory = DeviceBuffer.allocate(2 * m * k);
                DeviceBuffer bMemory = DeviceBuffer.allocate(2 * n * k)) {
            DeviceMatrix a = new DeviceMatrix(aMemory.address(), DType.BF16, m, k, k);
            DeviceMatrix b = new DeviceMatrix(bMemory.address(), DType.BF16, n, k, k);
            long rows = m / ranks;
            for (int r = 0; r < ranks; r++) {
                check.fillNormal(a.rows(r * rows, rows), 42 + r, 1);
            }
            check.fillNormal(b, 41, 1);
            world.run(fabric -> fullSize(fabric, a, b));
        }
    }

    private void fullSize(Fabric fabric, DeviceMatrix a, DeviceMatrix b) {
        gpu.bind();
        int rank = fabric.rank();
        long rows = a.rows() / fabric.size();
        DeviceMatrix own = a.rows(rank * rows, rows);
        try (DeviceCheck check = new DeviceCheck(gpu);
                GpuStream stream = GpuStream.create();
                HelionShared<DeviceMatrix> shared =
                        HelionCuda.empty(fabric, gpu, rows, a.cols(), DType.BF16);
                CudaAllGatherMatmul fused =
                        CudaAllGatherMatmul.on(fabric, gpu)
                                .a(Shards.even(a.rows(), fabric.size()), DType.BF16)
                                .b(b, true)
                                .output(DType.BF16)
                                .algorithm(Algorithm.MESH_PULL)
                                .prepare()) {
            shared.local().copyFrom(own, stream);
            try (HelionResult<DeviceMatrix> result =
                    HelionCuda.allGatherMatmul(
                            fabric, gpu, shared, b, true, null, null, 1, stream)) {
                result.await();
                fused.call(own);
                assertEquals(0, check.equal(result.aOut(), a).mismatches(), "gathered A");
                assertEquals(
                        0, check.equal(result.c(), fused.product(0)).mismatches(), "fused bits");
                if (rank == 0) {
                    DeviceCheck.Verdict verdict = check.product(a, b, true, result.c());
                    assertTrue(verdict.passed(), verdict.toString());
                }
                fabric.barrier();
            }
        }
    }

    /** Every tiling that the card's kernel has gives the same bits; others are refused. */
    @Test
    void tilingsAreChosenAndDoNotChangeBits() {
        int stages = gpu.capability() / 10 == 9 ? 4 : 3;
        List<Helion.Config> configs =
                gpu.capability() / 10 == 9
                        ? List.of(
                                Helion.Config.EXAMPLE,
                                new Helion.Config(128, 256, 64, 8, 4),
                                new Helion.Config(128, 192, 64, 8, 3),
                                new Helion.Config(128, 192, 64, 8, 4),
                                new Helion.Config(128, 128, 64, 8, 3),
                                new Helion.Config(128, 128, 64, 8, 4))
                        : List.of(new Helion.Config(128, 128, 64, 8, 3));
        ranks(2, DType.BF16, 300, 328, 712, true)
                .run(
                        bench -> {
                            bench.fill(1);
                            DeviceMatrix first = bench.matrix(DType.BF16, 600, 712);
                            configured(bench, first, null);
                            for (Helion.Config config : configs) {
                                DeviceMatrix c = bench.matrix(DType.BF16, 600, 712);
                                configured(bench, c, config);
                                assertEquals(
                                        0,
                                        bench.check.equal(c, first).mismatches(),
                                        config.toString());
                            }
                        });
        Helion.Config none = new Helion.Config(64, 64, 64, 4, 2);
        String message =
                refused(1, bench -> configured(bench, bench.matrix(DType.BF16, 64, 64), none))
                        .getMessage();
        String says = "tiles of 64 x 64 x 64 by 4 warps in 2 stages: expected";
        assertTrue(message.startsWith(says), message);
        assertTrue(message.contains("by 8 warps in " + stages + " stages"), message);
    }

    private void configured(Bench bench, DeviceMatrix c, Helion.Config config) {
        bench.check.poison(c);
        try (HelionResult<DeviceMatrix> result = bench.start(null, c, null, 4, config)) {
            result.await();
            assertEquals(c, result.c());
            bench.assertRight(result.aOut(), c, "config " + config);
        }
    }
}
