package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Ranks that share one GPU, all of whose products must be finished, beside as many products of
 * cuBLAS. Used by one thread.
 */
final class GpuSharedCase {

    static final String ITEM = "shared";

    private static final long M = 8192;
    private static final long K = 4096;
    private static final long N = 4096;

    /** So many times the products' own time at most. */
    private static final double NEEDED = 1.2;

    /** Enough for the JVM to compile what issues calls. */
    private static final int WARMUP = 200;

    private static final int QUICK_WARMUP = 5;
    private static final long TIMED_SEED = 21;
    private static final long VERIFIED_SEED = 22;

    private GpuSharedCase() {}

    static void run(GpuBench bench, Consumer<BenchRow> sink)
            throws IOException, InterruptedException {
        for (int ranks : bench.quick() ? List.of(2) : List.of(2, 4, 8)) {
            sink.accept(GpuCase.attempt(ITEM, name(ranks), () -> measured(bench, ranks)));
        }
    }

    private static String name(int ranks) {
        return "%d ranks on one GPU, M %d K %d N %d, bf16".formatted(ranks, M, K, N);
    }

    private static BenchRow measured(GpuBench bench, int ranks)
            throws IOException, InterruptedException {
        try (GpuData data = GpuData.of(bench, DType.BF16, Shards.even(M, ranks), K, N);
                GpuSharedRanks shared = new GpuSharedRanks(bench, data, TIMED_SEED)) {
            int warmup = bench.quick() ? QUICK_WARMUP : WARMUP;
            Map<String, Samples> times = shared.take(warmup, bench.iterations());
            return row(ranks, shared.automatic(), times, shared.verify(VERIFIED_SEED));
        }
    }

    /**
     * A row from what was measured for it. Pure.
     *
     * @param automatic what Weft chose
     */
    static BenchRow row(
            int ranks, String automatic, Map<String, Samples> times, List<BenchRow.Check> checks) {
        double products = ranks * times.get(GpuSharedRanks.CUBLAS).median();
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("ranks", (double) ranks);
        figures.put("m", (double) M);
        figures.put("k", (double) K);
        figures.put("n", (double) N);
        figures.put("productsUs", products);
        for (Algorithm algorithm : GpuSharedRanks.ALGORITHMS) {
            String name = GpuSharedRanks.timeName(algorithm);
            figures.put(name + "OverProducts", times.get(name).median() / products);
        }
        figures.put("needed", NEEDED);
        List<String> misses = new ArrayList<>();
        double over = figures.get("autoOverProducts");
        if (!(over <= NEEDED)) {
            misses.add(
                    String.format(
                            Locale.ROOT,
                            "%s takes %.3f times the products' own time, needed %.1f at most",
                            automatic,
                            over,
                            NEEDED));
        }
        return new BenchRow(
                ITEM,
                name(ranks) + ", " + automatic,
                "cuBLAS",
                1 / over,
                GpuCase.figures(figures, times),
                checks,
                misses);
    }
}
