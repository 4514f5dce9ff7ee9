package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.kernel.DeviceProduct;
import dev.weft.cuda.kernel.KernelFamily;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The gated kernels with all flags published beforehand, in small shapes: what compute-sanitizer,
 * which lets no copy pass a kernel, can watch. Its command is in docs/gpu.md.
 */
@Tag("gpu")
class GatedProductIT {

    private String before;

    @BeforeEach
    void rememberKernel() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        before = System.getProperty(KernelFamily.PROPERTY);
    }

    @AfterEach
    void restoreKernel() {
        if (before == null) {
            System.clearProperty(KernelFamily.PROPERTY);
        } else {
            System.setProperty(KernelFamily.PROPERTY, before);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "hopper, FP16, FP16, false, 700, 200, 392",
        "hopper, BF16, FP32, true, 300, 136, 520",
        "mma, FP16, FP32, false, 300, 136, 264",
        "mma, BF16, BF16, true, 200, 100, 150",
        "simt, FP16, FP32, false, 300, 136, 264",
        "simt, BF16, BF16, true, 200, 100, 150",
    })
    void openGatesGiveTheProductAlone(
            String kind, DType in, DType out, boolean transposed, long m, long k, long n) {
        Gpu gpu = Gpu.open(0);
        assumeTrue(
                gpu.capability() / 10 == 9 || !kind.equals("hopper"),
                () -> "no Hopper instructions on " + gpu);
        System.setProperty(KernelFamily.PROPERTY, kind);
        Shards shards = Shards.of(m / 2, 0, m / 3, m - m / 2 - m / 3);
        try (Arena arena = Arena.ofShared();
                DeviceCheck check = new DeviceCheck(gpu);
                GpuStream stream = GpuStream.create()) {
            DeviceProblem problem = DeviceProblem.random(arena, shards, k, n, in, out, transposed);
            List<DeviceProduct> made = new ArrayList<>();
            try (CudaAllGatherMatmul op =
                    problem.describe(CudaAllGatherMatmul.withHostPeers(gpu, 2))
                            .algorithm(Algorithm.MESH_PULL)
                            .products(
                                    product -> {
                                        made.add(product);
                                        return product;
                                    })
                            .prepare()) {
                op.peerShard(0).copyFrom(problem.shard(0));
                op.peerShard(3).copyFrom(problem.shard(3));
                op.nextShard().upload(problem.shard(2), stream);
                op.start(op.nextShard(), stream, View.COMM_ONLY).await();
                DeviceMatrix a = DeviceProblem.upload(problem.a(), stream);
                DeviceMatrix b = DeviceProblem.upload(problem.b(), stream);
                assertEquals(0, check.equal(op.gathered().orElseThrow(), a).mismatches());
                check.poison(op.product(0));
                // The gated product is made first; what it waits for came in call 1.
                made.getFirst().launch(1, 1, stream);
                stream.synchronize();
                DeviceCheck.Verdict verdict = check.product(a, b, transposed, op.product(0));
                assertTrue(verdict.passed(), verdict.toString());
            }
        }
    }
}
