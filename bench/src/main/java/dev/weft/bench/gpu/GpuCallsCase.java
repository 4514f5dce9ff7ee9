package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.plan.Shards;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Many calls of one operator in a row, each with new rows and a poisoned output, each verified. A
 * row that is read too early is one of two calls before. Used by one thread.
 */
final class GpuCallsCase {

    static final String ITEM = "calls";

    private static final int CALLS = 1000;
    private static final int QUICK_CALLS = 50;
    private static final int RANKS = 4;
    private static final long M = 1024;
    private static final long K = 512;
    private static final long N = 512;
    private static final long FIRST_SEED = 1000;

    /** Failed calls that are told one by one. */
    private static final int TOLD = 5;

    private GpuCallsCase() {}

    static void run(GpuBench bench, Consumer<BenchRow> sink)
            throws IOException, InterruptedException {
        int calls = bench.quick() ? QUICK_CALLS : CALLS;
        sink.accept(GpuCase.attempt(ITEM, name(calls), () -> measured(bench, calls)));
    }

    private static String name(int calls) {
        return "%d calls, W %d, M %d K %d N %d, fp16".formatted(calls, RANKS, M, K, N);
    }

    private static BenchRow measured(GpuBench bench, int calls) {
        List<Double> us = new ArrayList<>();
        List<BenchRow.Check> failed = new ArrayList<>();
        try (GpuData data = GpuData.of(bench, DType.FP16, Shards.even(M, RANKS), K, N);
                CudaAllGatherMatmul operator = data.operator().prepare()) {
            for (int call = 0; call < calls; call++) {
                data.refill(FIRST_SEED + call);
                data.placePeers(operator);
                bench.check().poison(operator.product(0));
                us.add(operator.call(data.shard(0)).elapsedNs() / 1e3);
                DeviceCheck.Verdict verdict =
                        bench.check().product(data.a(), data.b(), false, operator.product(0));
                if (!verdict.passed()) {
                    failed.add(GpuJudge.within("call " + call + ": product", verdict));
                }
            }
        }
        return row(new Samples(us), failed);
    }

    /** A row from what was measured for it. Pure. */
    static BenchRow row(Samples times, List<BenchRow.Check> failed) {
        int calls = times.us().size();
        int passed = calls - failed.size();
        List<BenchRow.Check> checks = new ArrayList<>();
        checks.add(
                new BenchRow.Check(
                        "product of every call",
                        failed.isEmpty(),
                        passed + " of " + calls + " calls are right"));
        checks.addAll(failed.subList(0, Math.min(TOLD, failed.size())));
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("calls", (double) calls);
        figures.put("passed", (double) passed);
        return new BenchRow(
                ITEM,
                name(calls),
                "every call right",
                (double) passed / calls,
                GpuCase.figures(figures, Map.of("call", times)),
                checks,
                List.of());
    }
}
