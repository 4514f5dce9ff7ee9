package dev.weft.bench.gpu;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaAllGatherMatmulBuilder;
import dev.weft.ffi.CublasLt;
import dev.weft.gemm.Deviation;
import dev.weft.gemm.Float64Oracle;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.Optional;

/** Inputs of 16 bits, random and never zero. Used by one thread. */
class GpuData extends GpuOperands {

    private static final long B_SEED = 1_000_003;

    private final DeviceMatrix a;
    private final DeviceMatrix b;

    /**
     * @param k a multiple of 8, like {@code n}, so that rows are aligned
     */
    GpuData(GpuBench bench, DType type, Shards shards, long k, long n) {
        super(bench, shards, k, n);
        long m = shards.totalRows();
        long aBytes = Matrix.contiguousBytes(type, m, k);
        long bytes = aBytes + Matrix.contiguousBytes(type, k, n);
        long address = opened.add(DeviceBuffer.allocate(bytes)).address();
        a = new DeviceMatrix(address, type, m, k, k);
        b = new DeviceMatrix(address + aBytes, type, k, n, n);
        bench.check().fillNormal(b, B_SEED, 1f);
    }

    @Override
    DeviceMatrix a() {
        return a;
    }

    DeviceMatrix b() {
        return b;
    }

    @Override
    CudaAllGatherMatmulBuilder operator() {
        return CudaAllGatherMatmul.withHostPeers(bench.gpu(), 0)
                .a(shards, a.dtype())
                .b(b, false)
                .output(a.dtype())
                .deadline(GpuBench.DEADLINE);
    }

    @Override
    void refill(long seed) {
        bench.check().fillNormal(a, seed, 1f);
    }

    @Override
    GpuCublas cublas(DType out) throws IOException, InterruptedException {
        CublasLt.Product product =
                CublasLt.prepare(
                        a.dtype() == DType.BF16,
                        out == DType.FP32,
                        a.rows(),
                        n,
                        k,
                        k,
                        false,
                        n,
                        n,
                        GpuCublas.WORKSPACE_BYTES,
                        GpuCublas.CANDIDATES);
        return new GpuCublas(bench, product, a.address(), b.address(), out, a.rows(), n);
    }

    @Override
    Optional<DeviceCheck.Verdict> check(DeviceMatrix c) {
        return Optional.of(bench.check().product(a, b, false, c));
    }

    @Override
    Deviation float64(DeviceMatrix c, long[] rows, Arena arena) {
        Matrix hostB = Matrix.allocate(arena, b.dtype(), k, n);
        b.download(hostB, bench.stream());
        return new Float64Oracle(download(a, rows, arena), hostB, false)
                .check(download(c, rows, arena));
    }
}
