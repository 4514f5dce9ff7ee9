package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Gather and product at once beside the longer of the two alone: one rank on the GPU, its peers in
 * host memory behind the bus. Used by one thread.
 */
final class GpuOverlapCase {

    static final String OVERLAP = "overlap";
    static final String FP8 = "fp8";
    static final String PIPELINED_CUBLAS = "pipelinedCublas";
    static final String BF16 = "pipelinedBf16";

    private static final int MIN_WARMUP = 3;
    private static final int MAX_WARMUP = 500;

    /** A link that has slept is slow at first: so much is moved before the small rows count. */
    private static final long WARMUP_BYTES = 2L << 30;

    /**
     * A short call with copies of whole rows and of slices, until the JVM has compiled what issues
     * them: else it shows in the times.
     */
    private static final GpuOverlapRow HOST_WARMUP = GpuOverlapRow.of(1);

    private static final int HOST_WARMUP_ROUNDS = 3000;
    private static final int QUICK_HOST_WARMUP_ROUNDS = 100;

    /** Of the table, for operands of 8 bits: one limited by the link, two by the product. */
    private static final List<Integer> FP8_ROWS = List.of(5, 8, 9);

    private static final int FP8_WARMUP = 5;

    private static final long TIMED_SEED = 11;
    private static final long VERIFIED_SEED = 12;
    private static final long BF16_SEED = 3;

    private GpuOverlapCase() {}

    /**
     * Every shape has a row with outputs of the inputs' type, in which PyTorch takes turns too, and
     * one with fp32.
     */
    static void run(GpuBench bench, Consumer<BenchRow> sink)
            throws IOException, InterruptedException {
        boolean warm = false;
        for (int number : bench.rows()) {
            GpuOverlapRow shape = GpuOverlapRow.of(number);
            for (DType out : List.of(shape.type(), DType.FP32)) {
                boolean first = !warm;
                sink.accept(
                        GpuRow.attempt(
                                OVERLAP,
                                shape.name(out),
                                () -> measured(bench, shape, out, first)));
                warm = true;
            }
        }
    }

    private static BenchRow measured(GpuBench bench, GpuOverlapRow shape, DType out, boolean first)
            throws IOException, InterruptedException {
        if (first) {
            warmHostUp(bench);
        }
        try (GpuData data = data(bench, shape.type(), shape);
                GpuSides sides = sides(data, out)) {
            if (shape.hasFewRows()) {
                sides.addGraph();
            }
            if (out == shape.type()) {
                sides.addPytorch();
            }
            Map<String, Samples> times = sides.take(warmup(bench, shape), bench.iterations());
            return shape.measured(out, times, sides.counts(), sides.verify(VERIFIED_SEED));
        }
    }

    private static int warmup(GpuBench bench, GpuOverlapRow shape) {
        long bytesPerRound = 4 * shape.m() * shape.k() * DType.FP16.bytes();
        return bench.quick()
                ? MIN_WARMUP
                : Math.clamp(WARMUP_BYTES / bytesPerRound, MIN_WARMUP, MAX_WARMUP);
    }

    private static void warmHostUp(GpuBench bench) throws IOException, InterruptedException {
        try (GpuData data = data(bench, DType.FP16, HOST_WARMUP);
                GpuSides sides = sides(data, DType.FP16)) {
            sides.take(bench.quick() ? QUICK_HOST_WARMUP_ROUNDS : HOST_WARMUP_ROUNDS, 1);
        }
    }

    private static GpuData data(GpuBench bench, DType type, GpuOverlapRow shape) {
        return new GpuData(bench, type, shape.shards(), shape.k(), shape.n());
    }

    private static GpuSides sides(GpuData data, DType out)
            throws IOException, InterruptedException {
        GpuSides sides = new GpuSides(data, out, TIMED_SEED);
        sides.add(PIPELINED_CUBLAS, data, op -> op.engine("cublas"));
        return sides;
    }

    /** Operands of 8 bits, beside cublasLt with the same scales, and beside bf16. */
    static void runFp8(GpuBench bench, Consumer<BenchRow> sink)
            throws IOException, InterruptedException {
        for (int number : bench.quick() ? FP8_ROWS.subList(0, 1) : FP8_ROWS) {
            GpuOverlapRow shape = GpuOverlapRow.of(number);
            for (Scaling scaling : List.of(Scaling.ROW, Scaling.BLOCK)) {
                sink.accept(
                        GpuRow.attempt(
                                FP8, shape.name(scaling), () -> measured(bench, shape, scaling)));
            }
        }
    }

    private static BenchRow measured(GpuBench bench, GpuOverlapRow shape, Scaling scaling)
            throws IOException, InterruptedException {
        try (GpuScaledData data =
                        new GpuScaledData(bench, scaling, shape.shards(), shape.k(), shape.n());
                GpuData wide = data(bench, DType.BF16, shape);
                GpuSides sides = new GpuSides(data, DType.BF16, TIMED_SEED)) {
            wide.refill(BF16_SEED);
            sides.add(BF16, wide, op -> op);
            Map<String, Samples> times = sides.take(FP8_WARMUP, bench.iterations());
            return shape.measured(scaling, times, sides.verify(VERIFIED_SEED));
        }
    }
}
