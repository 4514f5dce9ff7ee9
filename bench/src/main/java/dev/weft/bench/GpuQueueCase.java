package dev.weft.bench;

import dev.weft.cuda.CudaAllGatherMatmul;
import dev.weft.cuda.DeviceCheck;
import dev.weft.op.View;
import dev.weft.plan.Shards;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Time per call, by the host's clock, of calls that are awaited one by one and of calls that are
 * queued two deep, so that the copies of one run beside the product before it. Used by one thread.
 */
final class GpuQueueCase implements GpuCase {

    static final String ITEM = "queue";
    static final String AWAITED = "awaited";
    static final String QUEUED = "queued";

    private static final int CALLS = 20;

    /** Gather three times the product, and product a little more than the gather. */
    private static final List<Long> COLUMNS = List.of(4096L, 14_336L);

    private static final int RANKS = 8;
    private static final long M = 8192;
    private static final long K = 4096;
    private static final long SEED = 77;

    @Override
    public String item() {
        return ITEM;
    }

    @Override
    public void run(GpuBench bench, Consumer<GpuRow> sink) {
        for (long n : COLUMNS.subList(0, bench.quick() ? 1 : COLUMNS.size())) {
            sink.accept(GpuRow.attempt(ITEM, name(n), () -> measured(bench, n)));
        }
    }

    private static String name(long n) {
        return CALLS + " calls, W " + RANKS + ", M " + M + " K " + K + " N " + n + ", fp16";
    }

    private static GpuRow measured(GpuBench bench, long n) {
        try (GpuData data = new GpuData(bench, DType.FP16, Shards.even(M, RANKS), K, n);
                CudaAllGatherMatmul operator =
                        CudaAllGatherMatmul.withHostPeers(bench.gpu(), 0)
                                .a(data.shards(), DType.FP16)
                                .b(data.b(), false)
                                .deadline(GpuBench.DEADLINE)
                                .prepare()) {
            data.refill(SEED);
            data.placePeers(operator);
            operator.call(data.shard(0));
            operator.call(data.shard(0));
            int rounds = bench.iterations();
            double[] awaited = new double[rounds];
            double[] queued = new double[rounds];
            for (int round = -1; round < rounds; round++) {
                // The first round warms up and is replaced.
                awaited[Math.max(0, round)] = usPerCall(bench, operator, 1);
                queued[Math.max(0, round)] = usPerCall(bench, operator, 2);
            }
            bench.check().poison(operator.product(0));
            usPerCall(bench, operator, 2);
            DeviceCheck.Verdict verdict =
                    bench.check().product(data.a(), data.b(), false, operator.product(0));
            return row(n, awaited, queued, List.of(GpuCheck.within("the last product", verdict)));
        }
    }

    private static double usPerCall(GpuBench bench, CudaAllGatherMatmul operator, int deep) {
        long start = System.nanoTime();
        int open = 0;
        for (int call = 0; call < CALLS; call++) {
            if (open == deep) {
                operator.await();
                open--;
            }
            operator.start(operator.nextShard(), bench.stream(), View.PIPELINED);
            open++;
        }
        for (; open > 0; open--) {
            operator.await();
        }
        return (System.nanoTime() - start) / 1e3 / CALLS;
    }

    /** A row from what was measured for it. Pure. */
    static GpuRow row(long n, double[] awaitedUs, double[] queuedUs, List<GpuCheck> checks) {
        Samples awaited = GpuTurns.samples(awaitedUs);
        Samples queued = GpuTurns.samples(queuedUs);
        Map<String, Samples> times = new LinkedHashMap<>();
        times.put(AWAITED, awaited);
        times.put(QUEUED, queued);
        double gain = awaited.median() / queued.median();
        return new GpuRow(
                ITEM,
                name(n),
                AWAITED,
                gain,
                times,
                Map.of("n", (double) n, "gain", gain),
                checks,
                List.of());
    }
}
