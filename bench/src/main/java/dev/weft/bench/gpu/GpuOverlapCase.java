package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Gather and product at once beside the longer of the two alone: one rank on the GPU, its peers in
 * host memory behind the bus. Every shape has a row with outputs of the inputs' type, in which
 * PyTorch takes turns too, and one with fp32. Used by one thread.
 */
final class GpuOverlapCase {

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

    private static final long TIMED_SEED = 11;
    private static final long VERIFIED_SEED = 12;

    private boolean warm;

    void run(GpuBench bench, Consumer<BenchRow> sink) throws IOException, InterruptedException {
        for (int number : bench.rows()) {
            GpuOverlapRow shape = GpuOverlapRow.of(number);
            for (DType out : List.of(shape.type(), DType.FP32)) {
                String name = shape.name(out);
                sink.accept(
                        GpuCase.attempt(
                                GpuOverlapRow.ITEM, name, () -> measured(bench, shape, out)));
            }
        }
    }

    private BenchRow measured(GpuBench bench, GpuOverlapRow shape, DType out)
            throws IOException, InterruptedException {
        warmHostUp(bench);
        try (GpuData data = data(bench, shape);
                GpuOverlapSides sides = new GpuOverlapSides(bench, data, out, TIMED_SEED)) {
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

    private void warmHostUp(GpuBench bench) throws IOException, InterruptedException {
        if (warm) {
            return;
        }
        try (GpuData data = data(bench, HOST_WARMUP);
                GpuOverlapSides sides = new GpuOverlapSides(bench, data, DType.FP16, TIMED_SEED)) {
            sides.take(bench.quick() ? QUICK_HOST_WARMUP_ROUNDS : HOST_WARMUP_ROUNDS, 1);
        }
        warm = true;
    }

    private static GpuData data(GpuBench bench, GpuOverlapRow shape) {
        return GpuData.of(bench, shape.type(), shape.shards(), shape.k(), shape.n());
    }
}
