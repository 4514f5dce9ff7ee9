package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.plan.Shards;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import java.util.function.IntToLongFunction;
import java.util.function.Supplier;

/**
 * Many calls of one operator in a row, each with new rows and a poisoned output, each verified. A
 * row that is read too early is one of two calls before. Used by one thread.
 *
 * @param what is called, behind the number of calls
 * @param time the name of a call's time
 */
record GpuCallsCase(String item, String what, String time) {

    static final GpuCallsCase GATHER =
            new GpuCallsCase("calls", "calls, W 4, M 1024 K 512 N 512, fp16", "call");

    private static final int CALLS = 1000;
    private static final int QUICK_CALLS = 50;
    private static final long FIRST_SEED = 1000;

    /** Failed calls that are listed one by one. */
    private static final int LISTED = 5;

    static void run(GpuBench bench, Consumer<BenchRow> sink)
            throws IOException, InterruptedException {
        sink.accept(GATHER.attempt(bench, calls -> gathers(bench, calls)));
    }

    private static BenchRow gathers(GpuBench bench, int calls) {
        try (GpuData data = new GpuData(bench, DType.FP16, Shards.even(1024, 4), 512, 512);
                CudaAllGatherMatmul operator = data.operator().prepare()) {
            return GATHER.measured(
                    calls,
                    call -> {
                        data.refill(FIRST_SEED + call);
                        data.placePeers(operator);
                        bench.check().poison(operator.product(0));
                        return operator.call(data.shard(0)).elapsedNs();
                    },
                    () -> data.check(operator.product(0)).orElseThrow());
        }
    }

    private String name(int calls) {
        return calls + " " + what;
    }

    BenchRow attempt(GpuBench bench, IntFunction<BenchRow> measured)
            throws IOException, InterruptedException {
        int calls = bench.quick() ? QUICK_CALLS : CALLS;
        return GpuRow.attempt(item, name(calls), () -> measured.apply(calls));
    }

    /**
     * @param takeNs makes the call of that number; its time
     * @param verdict on the latest call
     */
    BenchRow measured(int calls, IntToLongFunction takeNs, Supplier<DeviceCheck.Verdict> verdict) {
        List<Double> us = new ArrayList<>();
        List<BenchRow.Check> failed = new ArrayList<>();
        for (int call = 0; call < calls; call++) {
            us.add(takeNs.applyAsLong(call) / 1e3);
            DeviceCheck.Verdict found = verdict.get();
            if (!found.passed()) {
                failed.add(GpuJudge.within("call " + call + ": product", found));
            }
        }
        return row(new Samples(us), failed);
    }

    /** A row from what was measured for it. Pure. */
    BenchRow row(Samples times, List<BenchRow.Check> failed) {
        int calls = times.us().size();
        int passed = calls - failed.size();
        List<BenchRow.Check> checks = new ArrayList<>();
        checks.add(
                new BenchRow.Check(
                        "product of every call",
                        failed.isEmpty(),
                        passed + " of " + calls + " calls are right"));
        checks.addAll(failed.subList(0, Math.min(LISTED, failed.size())));
        return new GpuRow(item, name(calls), "every call right", Map.of(time, times))
                .put("calls", calls, "passed", passed)
                .row((double) passed / calls, checks);
    }
}
