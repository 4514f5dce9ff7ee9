package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Interleaved;
import dev.weft.bench.measure.ProductCheck;
import dev.weft.bench.measure.Resources;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceEvent;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaWeights;
import dev.weft.ffi.CublasLt;
import dev.weft.gemm.Deviation;
import dev.weft.gemm.Float64Oracle;
import dev.weft.plan.Shards;
import dev.weft.report.Samples;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.QuantizedMatrix;
import dev.weft.trace.View;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Consumer;

/**
 * Products of few rows of bf16 with a B in blocks, beside cublasLt's product with a B of the same
 * shape in bf16. So many copies of B take turns that each comes from memory and not from the cache.
 * Used by one thread.
 */
final class GpuBlocksCase {

    static final String ITEM = "blocks";
    static final String CUBLAS = "cublas";
    static final String BLOCKS = "blocks";

    /** More than the L2 cache of any GPU keeps. */
    private static final long TURNED_BYTES = 200L << 20;

    private static final int MOST_COPIES = 8;
    private static final int LAUNCHES = 5;
    private static final int WARMUP = 5;

    /** Bytes per us: the H200's memory by its data sheet. */
    private static final double MEMORY = 4.8e6;

    private static final List<Integer> ROWS = List.of(1, 8, 32, 128);

    /** A B, and what the kernel Marlin takes for 1 row and 4 bits on an H100, as published. */
    private record Size(long n, long k, double marlinUs) {}

    private static final List<Size> SIZES =
            List.of(
                    new Size(8192, 8192, 20.3),
                    new Size(8192, 16_384, 38.1),
                    new Size(7168, 20_480, 40.6));

    private GpuBlocksCase() {}

    static void run(GpuBench bench, Consumer<BenchRow> sink)
            throws IOException, InterruptedException {
        for (BlockType type : BlockType.MULTIPLIED) {
            for (Size size : SIZES) {
                boolean first = size.equals(SIZES.getFirst());
                if (first || !bench.quick()) {
                    run(bench, type, size, first && !bench.quick() ? ROWS : List.of(1), sink);
                }
            }
        }
    }

    private static void run(
            GpuBench bench, BlockType type, Size size, List<Integer> rows, Consumer<BenchRow> sink)
            throws IOException, InterruptedException {
        try (Arena arena = Arena.ofShared();
                Resources opened = new Resources()) {
            QuantizedMatrix b = random(arena, type, size);
            List<CudaWeights> copies = new ArrayList<>();
            long count = Math.clamp(Math.ceilDiv(TURNED_BYTES, b.bytes()), 1, MOST_COPIES);
            for (int i = 0; i < count; i++) {
                copies.add(opened.add(CudaWeights.copyOf(bench.gpu(), b)));
            }
            Matrix values = b.dequantize(arena);
            DeviceMatrix wide = GpuOperands.matrix(opened, DType.BF16, size.n(), size.k());
            bench.check().fillNormal(wide, 1, 1f);
            for (int m : rows) {
                String name = name(type, size, m);
                boolean compares = m == 1 && type != BlockType.Q8_0;
                double marlinUs = compares ? size.marlinUs() : Double.NaN;
                sink.accept(
                        GpuRow.attempt(
                                ITEM,
                                name,
                                () ->
                                        measured(
                                                bench, name, m, size, marlinUs, copies, values,
                                                wide)));
            }
        }
    }

    private static String name(BlockType type, Size size, int rows) {
        return "%d rows, %s, N %d, K %d".formatted(rows, type.label(), size.n(), size.k());
    }

    /** Blocks of random numbers, whose values are about 1. */
    private static QuantizedMatrix random(Arena arena, BlockType type, Size size) {
        QuantizedMatrix b = QuantizedMatrix.allocate(arena, type, size.n(), size.k());
        Random random = new Random(7);
        byte[] block = new byte[type.bytes()];
        // Numbers of Q4_K are scaled twice.
        double scale =
                type == BlockType.Q8_0 ? 1.0 / 64 : type == BlockType.Q4_0 ? 0.25 : 1 / 128.0;
        for (long at = 0; at < b.bytes(); at += block.length) {
            random.nextBytes(block);
            MemorySegment.copy(block, 0, b.data(), ValueLayout.JAVA_BYTE, at, block.length);
            put(b, at, scale * (1 + random.nextDouble()));
            if (type == BlockType.Q4_K) {
                put(b, at + 2, scale * 8 * (1 + random.nextDouble()));
            }
        }
        return b;
    }

    private static void put(QuantizedMatrix b, long at, double scale) {
        short half = Float.floatToFloat16((float) scale);
        b.data().set(ValueLayout.JAVA_SHORT_UNALIGNED, at, half);
    }

    private static BenchRow measured(
            GpuBench bench,
            String name,
            int m,
            Size size,
            double marlinUs,
            List<CudaWeights> copies,
            Matrix values,
            DeviceMatrix wide)
            throws IOException, InterruptedException {
        try (Arena arena = Arena.ofShared();
                Resources opened = new Resources()) {
            DeviceMatrix a = GpuOperands.matrix(opened, DType.BF16, m, size.k());
            bench.check().fillNormal(a, m, 1f);
            List<CudaAllGatherMatmul> operators = new ArrayList<>();
            for (CudaWeights each : copies) {
                operators.add(opened.add(operator(bench, each, a)));
            }
            Runnable calls =
                    () ->
                            operators.forEach(
                                    op -> op.start(op.nextShard(), bench.stream(), View.PIPELINED));
            GpuStream.Graph graph = opened.add(bench.stream().capture(calls));
            GpuCublas cublas = opened.add(cublas(bench, a, wide));
            DeviceEvent begin = opened.add(DeviceEvent.timed());
            DeviceEvent end = opened.add(DeviceEvent.timed());
            Map<String, Interleaved.Turn> turns = new LinkedHashMap<>();
            turns.put(CUBLAS, cublas::takeNs);
            turns.put(
                    BLOCKS,
                    () -> {
                        // The stream is busy when the first event is recorded: no gap counts.
                        graph.launch(bench.stream());
                        begin.record(bench.stream());
                        for (int i = 0; i < LAUNCHES; i++) {
                            graph.launch(bench.stream());
                        }
                        end.record(bench.stream());
                        bench.stream().synchronize();
                        return end.nsSince(begin) / ((long) LAUNCHES * operators.size());
                    });
            Map<String, Samples> times = GpuRow.take(turns, WARMUP, bench.iterations());
            Matrix rows = Matrix.allocate(arena, DType.BF16, m, size.k());
            a.download(rows, bench.stream());
            Float64Oracle oracle = new Float64Oracle(rows, values, true);
            List<BenchRow.Check> checks = new ArrayList<>();
            for (CudaAllGatherMatmul op : List.of(operators.getFirst(), operators.getLast())) {
                op.checkReplays();
                Matrix c = Matrix.allocate(arena, DType.BF16, m, size.n());
                op.product(0).download(c, bench.stream());
                Deviation deviation = oracle.check(c, ProductCheck.sample(m));
                checks.add(
                        new BenchRow.Check(
                                "product", deviation.withinBound(), deviation.describe()));
            }
            return row(name, m, copies.getFirst().bytes(), marlinUs, times, checks);
        }
    }

    private static CudaAllGatherMatmul operator(GpuBench bench, CudaWeights b, DeviceMatrix a) {
        CudaAllGatherMatmul operator =
                CudaAllGatherMatmul.withHostPeers(bench.gpu(), 0)
                        .a(Shards.of(a.rows()), DType.BF16)
                        .b(b)
                        .output(DType.BF16)
                        .deadline(GpuBench.DEADLINE)
                        .prepare();
        operator.nextShard().copyFrom(a, bench.stream());
        bench.stream().synchronize();
        return operator;
    }

    private static GpuCublas cublas(GpuBench bench, DeviceMatrix a, DeviceMatrix b)
            throws IOException, InterruptedException {
        CublasLt.Product product =
                CublasLt.prepare(
                        true,
                        false,
                        a.rows(),
                        b.rows(),
                        a.cols(),
                        a.rowPitch(),
                        true,
                        b.rowPitch(),
                        b.rows(),
                        GpuCublas.WORKSPACE_BYTES,
                        GpuCublas.CANDIDATES);
        return new GpuCublas(
                bench, product, a.address(), b.address(), DType.BF16, a.rows(), b.rows());
    }

    /**
     * A row from what was measured for it. Pure.
     *
     * @param marlinUs NaN if it is not to be compared
     */
    static BenchRow row(
            String name,
            int rows,
            long bytes,
            double marlinUs,
            Map<String, Samples> times,
            List<BenchRow.Check> checks) {
        GpuRow row = new GpuRow(ITEM, name, "cublasLt's product of bf16", times);
        double us = row.us(BLOCKS);
        double speed = row.us(CUBLAS) / us;
        row.put("rows", rows, "speed", speed, "ofMemory", bytes / MEMORY / us);
        if (!Double.isNaN(marlinUs)) {
            row.put("marlinUs", marlinUs)
                    .needs(us <= marlinUs, "%.1f us, Marlin on an H100 %.1f", us, marlinUs);
        }
        return row.row(speed, checks);
    }
}
