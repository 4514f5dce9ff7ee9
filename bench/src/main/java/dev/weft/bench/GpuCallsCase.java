package dev.weft.bench;

import dev.weft.cuda.CudaAllGatherMatmul;
import dev.weft.cuda.DeviceCheck;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Many calls of one operator in a row, each with new rows and a poisoned output, each verified. A
 * row that is read too early is one of two calls before. Used by one thread.
 */
final class GpuCallsCase implements GpuCase {

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

    @Override
    public String item() {
        return ITEM;
    }

    @Override
    public void run(GpuBench bench, Consumer<GpuRow> sink) {
        int calls = bench.quick() ? QUICK_CALLS : CALLS;
        sink.accept(GpuRow.attempt(ITEM, name(calls), () -> measured(bench, calls)));
    }

    private static String name(int calls) {
        return calls + " calls, W " + RANKS + ", M " + M + " K " + K + " N " + N + ", fp16";
    }

    private static GpuRow measured(GpuBench bench, int calls) {
        double[] us = new double[calls];
        List<GpuCheck> failed = new ArrayList<>();
        try (GpuData data = new GpuData(bench, DType.FP16, Shards.even(M, RANKS), K, N);
                CudaAllGatherMatmul operator =
                        CudaAllGatherMatmul.withHostPeers(bench.gpu(), 0)
                                .a(data.shards(), DType.FP16)
                                .b(data.b(), false)
                                .deadline(GpuBench.DEADLINE)
                                .prepare()) {
            for (int call = 0; call < calls; call++) {
                data.refill(FIRST_SEED + call);
                data.placePeers(operator);
                bench.check().poison(operator.product(0));
                operator.call(data.shard(0));
                us[call] = operator.elapsedUs();
                DeviceCheck.Verdict verdict =
                        bench.check().product(data.a(), data.b(), false, operator.product(0));
                if (!verdict.passed()) {
                    failed.add(GpuCheck.within("call " + call + ": product", verdict));
                }
            }
        }
        return row(us, failed);
    }

    /** A row from what was measured for it. Pure. */
    static GpuRow row(double[] us, List<GpuCheck> failed) {
        int passed = us.length - failed.size();
        List<GpuCheck> checks = new ArrayList<>();
        checks.add(
                new GpuCheck(
                        "product of every call",
                        failed.isEmpty(),
                        passed + " of " + us.length + " calls are right"));
        checks.addAll(failed.subList(0, Math.min(TOLD, failed.size())));
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("calls", (double) us.length);
        figures.put("passed", (double) passed);
        return new GpuRow(
                ITEM,
                name(us.length),
                "every call right",
                (double) passed / us.length,
                Map.of("call", GpuTurns.samples(us)),
                figures,
                checks,
                List.of());
    }
}
