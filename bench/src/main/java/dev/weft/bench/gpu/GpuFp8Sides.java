package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Interleaved;
import dev.weft.bench.measure.ProductCheck;
import dev.weft.bench.measure.Resources;
import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.ffi.CublasLt;
import dev.weft.ffi.CudaStreams;
import dev.weft.gemm.Deviation;
import dev.weft.gemm.Float64Oracle;
import dev.weft.gemm.Loss;
import dev.weft.op.Operator.View;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * All that takes turns in one row of the table of 8-bit operands: rank 0 on the GPU, its peers'
 * rows in host memory. Used by one thread.
 */
final class GpuFp8Sides implements AutoCloseable {

    static final String BF16 = "pipelinedBf16";

    private static final long WORKSPACE_BYTES = 32L << 20;
    private static final int CANDIDATES = 8;
    private static final int POOL = 1 << 20;

    /** What sums of the tensor cores may lose of |A| x |B|. */
    private static final double LOST = 0x1p-11;

    private final GpuBench bench;
    private final Shards shards;
    private final long k;
    private final long n;
    private final Scaling scaling;
    private final Arena arena = Arena.ofShared();
    private final Resources opened = new Resources();
    private final Matrix rows;
    private final ScaledMatrix b;
    private final DeviceMatrix deviceRows;
    private final DeviceMatrix deviceB;
    private final DeviceMatrix aScales;
    private final DeviceMatrix cublasC;
    private final long workspace;
    private final CublasLt.Product cublas;
    private final int best;
    private final CudaAllGatherMatmul sequential;
    private final CudaAllGatherMatmul pipelined;
    private final CudaAllGatherMatmul pipelinedBf16;
    private final long begin = CudaStreams.createEvent(true, false);
    private final long end = CudaStreams.createEvent(true, false);

    GpuFp8Sides(GpuBench bench, GpuOverlapRow shape, Scaling scaling)
            throws IOException, InterruptedException {
        this.bench = bench;
        this.shards = shape.shards();
        this.k = shape.k();
        this.n = shape.n();
        this.scaling = scaling;
        try {
            long m = shape.m();
            long rowBytes = ScaledMatrix.rowBytes(k, scaling);
            rows = Matrix.allocate(arena, DType.E4M3, m, rowBytes);
            boolean byBlock = scaling == Scaling.BLOCK;
            long scaleRows = byBlock ? 128 : 1;
            long scaleCols = byBlock ? 128 : k;
            Matrix values = Matrix.allocate(arena, DType.E4M3, n, k);
            Matrix scales = Matrix.allocate(arena, DType.FP32, n / scaleRows, k / scaleCols);
            b = new ScaledMatrix(values, scales, scaleRows, scaleCols);
            fill(b, 5);
            deviceRows = matrix(DType.E4M3, m, rowBytes);
            deviceB = matrix(DType.E4M3, n, k);
            deviceB.upload(values, bench.stream());
            aScales = matrix(DType.FP32, 1, m * (byBlock ? k / 128 : 1));
            DeviceMatrix bScales = matrix(DType.FP32, 1, scales.rows() * scales.cols());
            bScales.upload(
                    Matrix.of(scales.data(), DType.FP32, 1, scales.rows() * scales.cols()),
                    bench.stream());
            cublasC = matrix(DType.BF16, m, n);
            workspace = opened.add(DeviceBuffer.allocate(WORKSPACE_BYTES)).address();
            refill(1);
            cublas =
                    opened.add(
                            CublasLt.prepareScaled(
                                    m,
                                    n,
                                    k,
                                    rowBytes,
                                    aScales.address(),
                                    bScales.address(),
                                    byBlock,
                                    WORKSPACE_BYTES,
                                    CANDIDATES));
            best = GpuCublas.fastest(cublas.candidates(), this::cublasNs);
            sequential = open(Algorithm.SEQUENTIAL, shards.maxRows());
            pipelined = open(Algorithm.MESH_PULL, 0);
            GpuData wide = opened.add(GpuData.of(bench, DType.BF16, shards, k, n));
            wide.refill(3);
            pipelinedBf16 =
                    opened.add(
                            wide.operator()
                                    .output(DType.BF16)
                                    .algorithm(Algorithm.MESH_PULL)
                                    .prepare());
            wide.placePeers(pipelinedBf16);
            pipelinedBf16.call(wide.shard(0));
            pipelinedBf16.call(wide.shard(0));
        } catch (Throwable e) {
            opened.closeAfter(e);
            throw e;
        }
    }

    private DeviceMatrix matrix(DType type, long height, long width) {
        long bytes = DeviceMatrix.alignedBytes(type, height, width);
        return DeviceMatrix.in(opened.add(DeviceBuffer.allocate(bytes)), type, height, width);
    }

    private CudaAllGatherMatmul open(Algorithm algorithm, long chunkRows) {
        var builder =
                CudaAllGatherMatmul.withHostPeers(bench.gpu(), 0)
                        .scaledA(shards, DType.E4M3, scaling)
                        .b(b, true)
                        .output(DType.BF16)
                        .algorithm(algorithm)
                        .deadline(GpuBench.DEADLINE);
        CudaAllGatherMatmul operator =
                opened.add((chunkRows > 0 ? builder.chunkRows(chunkRows) : builder).prepare());
        placePeers(operator);
        operator.call(deviceRows.rows(0, shards.rows(0)));
        operator.call(deviceRows.rows(0, shards.rows(0)));
        return operator;
    }

    private void placePeers(CudaAllGatherMatmul operator) {
        for (int r = 1; r < shards.ranks(); r++) {
            operator.peerShard(r).copyFrom(rows.rows(shards.firstRow(r), shards.rows(r)));
        }
    }

    /** Normal values that fill the range, and scales around 1: pieces of one pool, in any order. */
    private void fill(ScaledMatrix target, long seed) {
        Random random = new Random(seed);
        Matrix values = target.values();
        Matrix pool = Matrix.allocate(arena, values.dtype(), 1, POOL + values.cols());
        pool.fill(() -> 100 * random.nextGaussian());
        for (long row = 0; row < values.rows(); row++) {
            MemorySegment.copy(
                    pool.data(),
                    random.nextInt(POOL),
                    values.data(),
                    values.offset(row, 0),
                    values.cols());
        }
        target.scales().fill(() -> 0.5 + random.nextDouble());
    }

    /** Other rows of A; operators keep the ones that they have. */
    private void refill(long seed) {
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

    Map<String, Samples> take(int warmup, int rounds) throws IOException, InterruptedException {
        Map<String, Interleaved.Turn> turns = new LinkedHashMap<>();
        turns.put(GpuOverlapSides.CUBLAS, () -> cublasNs(best));
        turns.put(GpuOverlapSides.GATED, () -> takeNs(pipelined, View.COMPUTE_ONLY));
        turns.put(GpuOverlapSides.GATHER, () -> takeNs(sequential, View.COMM_ONLY));
        turns.put(GpuOverlapSides.SEQUENTIAL, () -> takeNs(sequential, View.PIPELINED));
        turns.put(GpuOverlapSides.PIPELINED, () -> takeNs(pipelined, View.PIPELINED));
        turns.put(BF16, () -> takeNs(pipelinedBf16, View.PIPELINED));
        return GpuCase.take(turns, warmup, rounds);
    }

    private long takeNs(CudaAllGatherMatmul operator, View view) {
        return operator.start(operator.nextShard(), bench.stream(), view).await().elapsedNs();
    }

    private long cublasNs(int candidate) {
        long stream = bench.stream().handle();
        CudaStreams.record(begin, stream);
        long a = deviceRows.address() + ScaledMatrix.valuesAt(k, scaling);
        cublas.run(candidate, a, deviceB.address(), cublasC.address(), workspace, stream);
        CudaStreams.record(end, stream);
        CudaStreams.synchronizeEvent(end);
        return Math.round(1e6 * CudaStreams.elapsedMs(begin, end));
    }

    /** Calls everything once more with other rows on poisoned outputs, and looks at all of it. */
    List<BenchRow.Check> verify() {
        refill(2);
        List<BenchRow.Check> checks = new ArrayList<>();
        for (CudaAllGatherMatmul operator : List.of(pipelined, sequential)) {
            placePeers(operator);
            bench.check().poison(operator.product(0));
            operator.call(deviceRows.rows(0, shards.rows(0)));
        }
        checks.add(equal("gathered rows", pipelined.gathered().orElseThrow(), deviceRows));
        checks.add(
                equal(
                        "pipelined and sequential: bits",
                        pipelined.product(0),
                        sequential.product(0)));
        bench.check().poison(cublasC);
        cublasNs(best);
        Matrix wideB = b.dequantize(arena);
        checks.add(float64(GpuOverlapSides.PIPELINED, pipelined.product(0), wideB));
        checks.add(float64(GpuOverlapSides.CUBLAS, cublasC, wideB));
        return checks;
    }

    private BenchRow.Check equal(String what, DeviceMatrix x, DeviceMatrix y) {
        DeviceCheck.Verdict verdict = bench.check().equal(x, y);
        String detail = verdict.passed() ? "equal" : verdict.mismatches() + " bytes differ";
        return new BenchRow.Check(what, verdict.passed(), detail);
    }

    private BenchRow.Check float64(String who, DeviceMatrix c, Matrix wideB) {
        long[] some = ProductCheck.sample(c.rows());
        Matrix wideA = Matrix.allocate(arena, DType.FP32, some.length, k);
        Matrix sums = Matrix.allocate(arena, c.dtype(), some.length, n);
        for (int i = 0; i < some.length; i++) {
            ScaledMatrix.dequantizeRows(rows, scaling, some[i], 1, wideA.rows(i, 1));
            c.rows(some[i], 1).download(sums.rows(i, 1), bench.stream());
        }
        Deviation deviation = new Float64Oracle(wideA, wideB, true, Loss.ofShare(LOST)).check(sums);
        return new BenchRow.Check(
                who + ": " + some.length + " rows in float64",
                deviation.withinBound(),
                deviation.describe());
    }

    @Override
    public void close() {
        opened.close();
        CudaStreams.destroyEvent(begin);
        CudaStreams.destroyEvent(end);
        arena.close();
    }
}
