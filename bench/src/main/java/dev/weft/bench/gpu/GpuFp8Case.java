package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.report.Samples;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Operands of 8 bits: alone beside cublasLt with the same scales, and pipelined beside the longer
 * of gather and product, and beside bf16. Shapes are rows of the overlap table. Used by one thread.
 */
final class GpuFp8Case {

    static final String ITEM = "fp8";

    /** One whose limit is the link, and two whose limit is the product. */
    private static final List<Integer> ROWS = List.of(5, 8, 9);

    private static final int WARMUP = 5;
    private static final double GATED_NEEDED = 0.97;
    private static final double OVER_BF16_BY_LINK = 1.7;
    private static final double OVER_BF16_BY_PRODUCT = 1.6;

    private GpuFp8Case() {}

    static void run(GpuBench bench, Consumer<BenchRow> sink)
            throws IOException, InterruptedException {
        for (int number : bench.quick() ? ROWS.subList(0, 1) : ROWS) {
            for (Scaling scaling : List.of(Scaling.ROW, Scaling.BLOCK)) {
                GpuOverlapRow shape = GpuOverlapRow.of(number);
                String name = shape + ", e4m3 with scales by " + scaling.label() + " to bf16";
                sink.accept(
                        GpuCase.attempt(ITEM, name, () -> measured(bench, shape, scaling, name)));
            }
        }
    }

    private static BenchRow measured(
            GpuBench bench, GpuOverlapRow shape, Scaling scaling, String name)
            throws IOException, InterruptedException {
        try (GpuFp8Sides sides = new GpuFp8Sides(bench, shape, scaling)) {
            Map<String, Samples> times = sides.take(WARMUP, bench.iterations());
            return row(shape, scaling, name, times, sides.verify());
        }
    }

    static BenchRow row(
            GpuOverlapRow shape,
            Scaling scaling,
            String name,
            Map<String, Samples> times,
            List<BenchRow.Check> checks) {
        double cublas = times.get(GpuOverlapSides.CUBLAS).median();
        double gather = times.get(GpuOverlapSides.GATHER).median();
        double pipelined = times.get(GpuOverlapSides.PIPELINED).median();
        double speed = cublas / times.get(GpuOverlapSides.GATED).median();
        double limit = Math.max(cublas, gather);
        double ofLimit = limit / pipelined;
        double needed = GpuOverlapRow.pipelinedNeeded(limit);
        double overBf16 = times.get(GpuFp8Sides.BF16).median() / pipelined;
        double overNeeded = gather > cublas ? OVER_BF16_BY_LINK : OVER_BF16_BY_PRODUCT;
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("ranks", (double) shape.shards().ranks());
        figures.put("m", (double) shape.m());
        figures.put("k", (double) shape.k());
        figures.put("n", (double) shape.n());
        figures.put("byBlock", scaling == Scaling.BLOCK ? 1.0 : 0.0);
        figures.put("gatedSpeed", speed);
        figures.put("limitUs", limit);
        figures.put("ofLimit", ofLimit);
        figures.put("needed", needed);
        figures.put("overBf16", overBf16);
        List<String> misses = new ArrayList<>();
        GpuOverlapRow.below(misses, "gated", speed, "cublasLt's speed", GATED_NEEDED);
        GpuOverlapRow.below(misses, "pipelined", ofLimit, "the limit", needed);
        GpuOverlapRow.below(misses, "pipelined", overBf16, "bf16's speed", overNeeded);
        return new BenchRow(
                ITEM, name, "limit", ofLimit, GpuCase.figures(figures, times), checks, misses);
    }
}
