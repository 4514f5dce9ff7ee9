package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Interleaved;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.op.Operator.PendingCall;
import dev.weft.plan.Shards;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Time per call, by the host's clock, of calls that are awaited one by one and of calls that are
 * queued two deep, so that the copies of one run beside the product before it. Used by one thread.
 */
final class GpuQueueCase {

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

    private GpuQueueCase() {}

    static void run(GpuBench bench, Consumer<BenchRow> sink)
            throws IOException, InterruptedException {
        for (long n : COLUMNS.subList(0, bench.quick() ? 1 : COLUMNS.size())) {
            sink.accept(GpuRow.attempt(ITEM, name(n), () -> measured(bench, n)));
        }
    }

    private static String name(long n) {
        return "%d calls, W %d, M %d K %d N %d, fp16".formatted(CALLS, RANKS, M, K, n);
    }

    private static BenchRow measured(GpuBench bench, long n)
            throws IOException, InterruptedException {
        try (GpuData data = new GpuData(bench, DType.FP16, Shards.even(M, RANKS), K, n);
                CudaAllGatherMatmul operator = data.operator().prepare()) {
            data.refill(SEED);
            data.placePeers(operator);
            operator.call(data.shard(0));
            operator.call(data.shard(0));
            Map<String, Interleaved.Turn> turns = new LinkedHashMap<>();
            turns.put(AWAITED, () -> nsPerCall(bench, operator, 1));
            turns.put(QUEUED, () -> nsPerCall(bench, operator, 2));
            Map<String, Samples> times = GpuRow.take(turns, 1, bench.iterations());
            bench.check().poison(operator.product(0));
            nsPerCall(bench, operator, 2);
            DeviceCheck.Verdict verdict = data.check(operator.product(0)).orElseThrow();
            return row(n, times, List.of(GpuJudge.within("the last product", verdict)));
        }
    }

    private static long nsPerCall(GpuBench bench, CudaAllGatherMatmul operator, int deep) {
        long start = System.nanoTime();
        int open = 0;
        PendingCall<DeviceMatrix> pending = null;
        for (int call = 0; call < CALLS; call++) {
            if (open == deep) {
                pending.await();
                open--;
            }
            pending = operator.start(operator.nextShard(), bench.stream(), View.PIPELINED);
            open++;
        }
        for (; open > 0; open--) {
            pending.await();
        }
        return (System.nanoTime() - start) / CALLS;
    }

    /** A row from what was measured for it. Pure. */
    static BenchRow row(long n, Map<String, Samples> times, List<BenchRow.Check> checks) {
        GpuRow row = new GpuRow(ITEM, name(n), AWAITED, times);
        double gain = row.us(AWAITED) / row.us(QUEUED);
        return row.put("n", n, "gain", gain).row(gain, checks);
    }
}
