package dev.weft.compat;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.tensor.DType;

/** One rank of {@link HelionCudaIT}'s processes: several calls, each with other data. */
final class HelionCudaChild {

    private static final int CALLS = 6;
    private static final long ROWS = 256;
    private static final long K = 512;
    private static final long N = 392;

    private HelionCudaChild() {}

    public static void main(String[] args) {
        try (World world = World.joined()) {
            world.run(HelionCudaChild::calls);
        }
    }

    private static void calls(Fabric fabric) {
        Gpu gpu = Gpu.open(0);
        long m = ROWS * fabric.size();
        try (DeviceCheck check = new DeviceCheck(gpu);
                GpuStream stream = GpuStream.create();
                DeviceBuffer aMemory = DeviceBuffer.allocate(2 * m * K);
                DeviceBuffer bMemory = DeviceBuffer.allocate(2 * K * N);
                HelionShared<DeviceMatrix> shared =
                        HelionCuda.empty(fabric, gpu, ROWS, K, DType.BF16)) {
            DeviceMatrix a = new DeviceMatrix(aMemory.address(), DType.BF16, m, K, K);
            DeviceMatrix b = new DeviceMatrix(bMemory.address(), DType.BF16, K, N, N);
            check.fillNormal(b, 99, 1);
            for (int call = 0; call < CALLS; call++) {
                check.fillNormal(a, call, 1);
                shared.local().copyFrom(a.rows(fabric.rank() * ROWS, ROWS), stream);
                try (HelionResult<DeviceMatrix> result =
                        HelionCuda.allGatherMatmul(
                                fabric, gpu, shared, b, false, null, null, 4, stream)) {
                    result.await();
                    if (!check.equal(result.aOut(), a).passed()
                            || !check.product(a, b, false, result.c()).passed()) {
                        throw new IllegalStateException("call " + call + " is wrong");
                    }
                }
            }
        }
        System.out.println("rank " + fabric.rank() + ": all calls are right");
    }
}
