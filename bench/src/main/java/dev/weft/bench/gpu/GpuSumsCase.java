package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Interleaved;
import dev.weft.bench.measure.Resources;
import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.kernel.DeviceEvent;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaMatmulReduce;
import dev.weft.ffi.CudaMemory;
import dev.weft.op.Operator.View;
import dev.weft.plan.Reduction;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Products that are summed over ranks, of which the last runs on the GPU and the others are host
 * memory: product, sums that come and sums that go at once, beside each of them alone; and many
 * calls in a row. Used by one thread.
 */
final class GpuSumsCase {

    static final String ITEM = "sums";
    static final String PRODUCT = "product";
    static final String IN = "in";
    static final String OUT = "out";
    static final String MOVES = "moves";
    static final String PIPELINED = "pipelined";

    /** Of the longest of product, sums that come and sums that go, each alone. */
    private static final double NEEDED = 0.95;

    private static final long M = 16_384;
    private static final long N = 8192;
    private static final int CALLS = 1000;
    private static final int QUICK_CALLS = 50;
    private static final long TIMED_SEED = 31;
    private static final long VERIFIED_SEED = 32;

    /** Failed calls that are told one by one. */
    private static final int TOLD = 5;

    private record Row(Reduction reduction, int ranks, long k, DType type) {

        String name() {
            return "%s, W %d, M %d K %d a rank N %d, %s"
                    .formatted(reduction.label(), ranks, M, k, N, type.label());
        }
    }

    private static final List<Row> ROWS =
            List.of(
                    new Row(Reduction.CHAIN, 4, 16_384, DType.BF16),
                    new Row(Reduction.CHAIN, 8, 16_384, DType.FP16),
                    new Row(Reduction.MESH_PUSH, 4, 16_384, DType.FP16),
                    new Row(Reduction.MESH_PUSH, 8, 16_384, DType.BF16),
                    new Row(Reduction.CHAIN, 4, 8192, DType.FP16));

    private GpuSumsCase() {}

    static void run(GpuBench bench, Consumer<BenchRow> sink)
            throws IOException, InterruptedException {
        for (Row row : ROWS.subList(0, bench.quick() ? 1 : ROWS.size())) {
            sink.accept(GpuCase.attempt(ITEM, row.name(), () -> measured(bench, row)));
        }
        int calls = bench.quick() ? QUICK_CALLS : CALLS;
        sink.accept(GpuCase.attempt(ITEM, calls(calls), () -> calls(bench, calls)));
    }

    private static BenchRow measured(GpuBench bench, Row row)
            throws IOException, InterruptedException {
        try (GpuSumsData data = new GpuSumsData(bench, row.type(), row.ranks(), M, row.k(), N);
                Resources opened = new Resources()) {
            data.refill(TIMED_SEED);
            CudaMatmulReduce op = opened.add(data.operator(row.reduction(), row.type()));
            DeviceBuffer buffer =
                    opened.add(DeviceBuffer.allocate(DeviceMatrix.alignedBytes(DType.FP32, M, N)));
            DeviceMatrix moved = DeviceMatrix.in(buffer, DType.FP32, M, N);
            Map<String, Interleaved.Turn> turns = new LinkedHashMap<>();
            turns.put(PRODUCT, () -> op.callInPlace(View.COMPUTE_ONLY).elapsedNs());
            turns.put(IN, () -> copyNs(bench, incoming(op, row), moved, true));
            turns.put(OUT, () -> copyNs(bench, outgoing(op, row), moved, false));
            turns.put(MOVES, () -> op.callInPlace(View.COMM_ONLY).elapsedNs());
            turns.put(PIPELINED, () -> op.callInPlace(View.PIPELINED).elapsedNs());
            Map<String, Samples> times = GpuCase.take(turns, 3, bench.iterations());
            return row(row, times, op.copiesPerCall(), checks(bench, data, op, row));
        }
    }

    /** What a call brings; one slot after the other holds the same rows. */
    private static List<Matrix> incoming(CudaMatmulReduce op, Row row) {
        List<Matrix> all = new ArrayList<>();
        for (int slot = 0; slot < Reduction.slotOf(row.ranks()); slot++) {
            op.incoming(0, slot)
                    .ifPresent(
                            sums ->
                                    all.add(
                                            row.reduction() == Reduction.CHAIN
                                                    ? sums
                                                    : sums.rows(
                                                            M - M / row.ranks(), M / row.ranks())));
        }
        return all;
    }

    private static List<Matrix> outgoing(CudaMatmulReduce op, Row row) {
        int slot =
                row.reduction() == Reduction.CHAIN
                        ? Reduction.WHOLE
                        : Reduction.slotOf(row.ranks() - 1);
        return List.of(op.outgoing(0, slot).orElseThrow());
    }

    /** In as few copies as there can be. */
    private static long copyNs(GpuBench bench, List<Matrix> host, DeviceMatrix device, boolean in) {
        try (DeviceEvent begin = DeviceEvent.timed();
                DeviceEvent end = DeviceEvent.timed()) {
            begin.record(bench.stream());
            for (Matrix each : host) {
                long there = each.data().address();
                CudaMemory.copyAsync(
                        in ? device.address() : there,
                        in ? there : device.address(),
                        each.rows() * device.pitchBytes(),
                        bench.stream().handle());
            }
            end.record(bench.stream());
            bench.stream().synchronize();
            return end.nsSince(begin);
        }
    }

    /** Calls once more with other values, and looks at all that it gives and sends. */
    private static List<BenchRow.Check> checks(
            GpuBench bench, GpuSumsData data, CudaMatmulReduce op, Row row) {
        data.refill(VERIFIED_SEED);
        data.place(op);
        Matrix sent = outgoing(op, row).getFirst();
        sent.data().fill((byte) 0xFF);
        bench.check().poison(op.product(0));
        op.call(data.input());
        List<BenchRow.Check> checks = new ArrayList<>();
        boolean chain = row.reduction() == Reduction.CHAIN;
        DeviceMatrix own = data.ownRows(data.a());
        checks.add(
                GpuJudge.within(
                        "result", bench.check().product(own, data.b(), false, op.product(0))));
        try (DeviceBuffer buffer =
                        DeviceBuffer.allocate(
                                DeviceMatrix.alignedBytes(DType.FP32, sent.rows(), N));
                CudaAllGatherMatmul sums = data.reference(chain, DType.FP32)) {
            DeviceMatrix here = DeviceMatrix.in(buffer, DType.FP32, sent.rows(), N);
            here.upload(sent, bench.stream());
            checks.add(same(bench, "sums that go", here, data.sentRows(sums.product(0))));
        }
        if (chain) {
            try (CudaAllGatherMatmul whole = data.reference(true, row.type())) {
                DeviceMatrix expected = data.ownRows(whole.product(0));
                checks.add(same(bench, "bits of one rank's product", op.product(0), expected));
            }
        }
        return checks;
    }

    private static BenchRow.Check same(
            GpuBench bench, String what, DeviceMatrix x, DeviceMatrix y) {
        DeviceCheck.Verdict verdict = bench.check().equal(x, y);
        return new BenchRow.Check(
                what, verdict.passed(), verdict.passed() ? "equal" : verdict.toString());
    }

    /** A row from what was measured for it. Pure. */
    private static BenchRow row(
            Row row, Map<String, Samples> times, int copies, List<BenchRow.Check> checks) {
        double pipelined = times.get(PIPELINED).median();
        double product = times.get(PRODUCT).median();
        double oneWay = Math.max(times.get(IN).median(), times.get(OUT).median());
        double limit = Math.max(product, oneWay);
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("ranks", (double) row.ranks());
        figures.put("m", (double) M);
        figures.put("k", (double) row.k());
        figures.put("n", (double) N);
        figures.put("limitUs", limit);
        figures.put("ofLimit", limit / pipelined);
        figures.put("ofBothWays", Math.max(product, times.get(MOVES).median()) / pipelined);
        figures.put("copies", (double) copies);
        figures.put("needed", NEEDED);
        List<String> misses = new ArrayList<>();
        if (!(limit / pipelined >= NEEDED)) {
            misses.add(
                    String.format(
                            Locale.ROOT,
                            "pipelined at %.3f of the limit, needed %.2f; at %.3f of product and"
                                    + " copies both ways at once",
                            limit / pipelined,
                            NEEDED,
                            figures.get("ofBothWays")));
        }
        return new BenchRow(
                ITEM,
                row.name(),
                "limit",
                limit / pipelined,
                GpuCase.figures(figures, times),
                checks,
                misses);
    }

    private static String calls(int calls) {
        return "%d calls of chain, W 4, M 1024 K 512 a rank N 512, fp16".formatted(calls);
    }

    /** Each with new values and poisoned results. */
    private static BenchRow calls(GpuBench bench, int calls) {
        List<BenchRow.Check> failed = new ArrayList<>();
        List<Double> us = new ArrayList<>();
        try (GpuSumsData data = new GpuSumsData(bench, DType.FP16, 4, 1024, 512, 512)) {
            data.refill(0);
            try (CudaMatmulReduce op = data.operator(Reduction.CHAIN, DType.FP16)) {
                for (int call = 0; call < calls; call++) {
                    data.refill(call);
                    data.place(op);
                    bench.check().poison(op.product(0));
                    us.add(op.call(data.input()).elapsedNs() / 1e3);
                    DeviceMatrix own = data.ownRows(data.a());
                    DeviceCheck.Verdict verdict =
                            bench.check().product(own, data.b(), false, op.product(0));
                    if (!verdict.passed()) {
                        failed.add(GpuJudge.within("call " + call, verdict));
                    }
                }
            }
        }
        int passed = calls - failed.size();
        List<BenchRow.Check> checks = new ArrayList<>();
        checks.add(
                new BenchRow.Check(
                        "result of every call",
                        failed.isEmpty(),
                        passed + " of " + calls + " calls are right"));
        checks.addAll(failed.subList(0, Math.min(TOLD, failed.size())));
        return new BenchRow(
                ITEM,
                calls(calls),
                "every call right",
                (double) passed / calls,
                GpuCase.figures(
                        Map.of("calls", (double) calls), Map.of(PIPELINED, new Samples(us))),
                checks,
                List.of());
    }
}
