package dev.weft.bench.gpu;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaAllGatherMatmulBuilder;
import dev.weft.ffi.CublasLt;
import dev.weft.gemm.Deviation;
import dev.weft.gemm.Float64Oracle;
import dev.weft.gemm.Loss;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.Random;

/** Inputs of 8 bits with scales by row or by block of 128. */
final class GpuScaledData extends GpuOperands {

    private static final long BLOCK = 128;
    private static final int POOL = 1 << 20;
    private static final long B_SEED = 5;

    /** What sums of the tensor cores may lose of |A| x |B|. */
    private static final double LOST = 0x1p-11;

    private final Scaling scaling;
    private final Arena arena = opened.add(Arena.ofShared());
    private final Matrix rows;
    private final ScaledMatrix b;
    private final DeviceMatrix deviceRows;
    private final DeviceMatrix deviceB;
    private final DeviceMatrix aScales;
    private final DeviceMatrix bScales;

    GpuScaledData(GpuBench bench, Scaling scaling, Shards shards, long k, long n) {
        super(bench, shards, k, n);
        this.scaling = scaling;
        long m = shards.totalRows();
        long rowBytes = ScaledMatrix.rowBytes(k, scaling);
        rows = Matrix.allocate(arena, DType.E4M3, m, rowBytes);
        long scaleRows = isByBlock() ? BLOCK : 1;
        long scaleCols = isByBlock() ? BLOCK : k;
        Matrix values = Matrix.allocate(arena, DType.E4M3, n, k);
        Matrix scales = Matrix.allocate(arena, DType.FP32, n / scaleRows, k / scaleCols);
        b = new ScaledMatrix(values, scales, scaleRows, scaleCols);
        fill(b, B_SEED);
        deviceRows = matrix(DType.E4M3, m, rowBytes);
        deviceB = matrix(DType.E4M3, n, k);
        deviceB.upload(values, bench.stream());
        aScales = matrix(DType.FP32, 1, m * (isByBlock() ? k / BLOCK : 1));
        long count = scales.rows() * scales.cols();
        bScales = matrix(DType.FP32, 1, count);
        bScales.upload(Matrix.of(scales.data(), DType.FP32, 1, count), bench.stream());
    }

    private boolean isByBlock() {
        return scaling == Scaling.BLOCK;
    }

    /** Normal values that fill the range, and scales around 1: pieces of one pool, in any order. */
    private void fill(ScaledMatrix target, long seed) {
        Random random = new Random(seed);
        Matrix values = target.values();
        Matrix pool = Matrix.allocate(arena, values.dtype(), 1, POOL + values.cols());
        pool.fill(() -> 100 * random.nextGaussian());
        for (long row = 0; row < values.rows(); row++) {
            long from = random.nextInt(POOL);
            long to = values.offset(row, 0);
            MemorySegment.copy(pool.data(), from, values.data(), to, values.cols());
        }
        target.scales().fill(() -> 0.5 + random.nextDouble());
    }

    @Override
    DeviceMatrix a() {
        return deviceRows;
    }

    @Override
    CudaAllGatherMatmulBuilder operator() {
        return CudaAllGatherMatmul.withHostPeers(bench.gpu(), 0)
                .scaledA(shards, DType.E4M3, scaling)
                .b(b, true)
                .output(DType.BF16)
                .deadline(GpuBench.DEADLINE);
    }

    @Override
    void refill(long seed) {
        ScaledMatrix a = ScaledMatrix.inRows(rows, k, scaling);
        fill(a, seed);
        deviceRows.upload(rows, bench.stream());
        Matrix scales = a.scales();
        Matrix across = Matrix.allocate(arena, DType.FP32, 1, aScales.cols());
        for (long block = 0; block < scales.cols(); block++) {
            for (long row = 0; row < rows.rows(); row++) {
                across.set(0, block * rows.rows() + row, scales.get(row, block));
            }
        }
        aScales.upload(across, bench.stream());
    }

    @Override
    GpuCublas cublas(DType out) throws IOException, InterruptedException {
        CublasLt.Product product =
                CublasLt.prepareScaled(
                        rows.rows(),
                        n,
                        k,
                        rows.cols(),
                        aScales.address(),
                        bScales.address(),
                        isByBlock(),
                        GpuCublas.WORKSPACE_BYTES,
                        GpuCublas.CANDIDATES);
        long a = deviceRows.address() + ScaledMatrix.valuesAt(k, scaling);
        return new GpuCublas(bench, product, a, deviceB.address(), out, rows.rows(), n);
    }

    @Override
    Optional<DeviceCheck.Verdict> check(DeviceMatrix c) {
        return Optional.empty();
    }

    @Override
    Deviation float64(DeviceMatrix c, long[] some, Arena own) {
        Matrix wide = Matrix.allocate(own, DType.FP32, some.length, k);
        for (int i = 0; i < some.length; i++) {
            ScaledMatrix.dequantizeRows(rows, scaling, some[i], 1, wide.rows(i, 1));
        }
        return new Float64Oracle(wide, b.dequantize(own), true, Loss.ofShare(LOST))
                .check(download(c, some, own));
    }
}
