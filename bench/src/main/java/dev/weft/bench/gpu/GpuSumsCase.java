package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Interleaved;
import dev.weft.bench.measure.Resources;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.kernel.DeviceEvent;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaMatmulReduce;
import dev.weft.ffi.CudaMemory;
import dev.weft.plan.Reduction;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.View;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
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
    private static final long TIMED_SEED = 31;
    private static final long VERIFIED_SEED = 32;

    private record Row(Reduction reduction, int ranks, long k, DType type) {

        boolean isChain() {
            return reduction == Reduction.CHAIN;
        }

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
            sink.accept(GpuRow.attempt(ITEM, row.name(), () -> measured(bench, row)));
        }
        sink.accept(calls(bench));
    }

    private static BenchRow measured(GpuBench bench, Row row)
            throws IOException, InterruptedException {
        try (GpuSumsData data =
                        new GpuSumsData(
                                bench, row.type(), M, GpuSumsData.lastOf(row.ranks(), row.k()), N);
                Resources opened = new Resources()) {
            data.refill(TIMED_SEED);
            CudaMatmulReduce op = opened.add(data.operator(row.reduction()));
            DeviceMatrix moved = GpuOperands.matrix(opened, DType.FP32, M, N);
            Map<String, Interleaved.Turn> turns = new LinkedHashMap<>();
            turns.put(PRODUCT, () -> op.callInPlace(View.COMPUTE_ONLY).elapsedNs());
            turns.put(IN, () -> copyNs(bench, incoming(op, row), moved, true));
            turns.put(OUT, () -> copyNs(bench, List.of(outgoing(op, row)), moved, false));
            turns.put(MOVES, () -> op.callInPlace(View.COMM_ONLY).elapsedNs());
            turns.put(PIPELINED, () -> op.callInPlace(View.PIPELINED).elapsedNs());
            Map<String, Samples> times = GpuRow.take(turns, 3, bench.iterations());
            return row(row, times, op.copiesPerCall(), checks(bench, data, op, row));
        }
    }

    /** What a call brings; one slot after the other holds the same rows. */
    private static List<Matrix> incoming(CudaMatmulReduce op, Row row) {
        long own = M / row.ranks();
        List<Matrix> all = new ArrayList<>();
        for (int slot = 0; slot < Reduction.slotOf(row.ranks()); slot++) {
            op.incoming(0, slot)
                    .ifPresent(sums -> all.add(row.isChain() ? sums : sums.rows(M - own, own)));
        }
        return all;
    }

    private static Matrix outgoing(CudaMatmulReduce op, Row row) {
        int slot = row.isChain() ? Reduction.WHOLE : Reduction.slotOf(row.ranks() - 1);
        return op.outgoing(0, slot).orElseThrow();
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
        Matrix sent = outgoing(op, row);
        sent.data().fill((byte) 0xFF);
        bench.check().poison(op.product(0));
        op.call(data.input(data.last()));
        List<BenchRow.Check> checks = new ArrayList<>();
        DeviceMatrix own = data.ownRows(data.a(), data.last());
        checks.add(
                GpuJudge.within(
                        "result", bench.check().product(own, data.b(), false, op.product(0))));
        long from = row.isChain() ? 0 : data.kParts().firstRow(data.last());
        try (Resources opened = new Resources()) {
            CudaAllGatherMatmul sums =
                    opened.add(data.alone(from, data.kParts().totalRows(), DType.FP32));
            DeviceMatrix here = GpuOperands.matrix(opened, DType.FP32, sent.rows(), N);
            here.upload(sent, bench.stream());
            DeviceMatrix expected = sums.product(0).rows(0, data.shards.firstRow(data.last()));
            checks.add(GpuJudge.sameBits(bench, "sums that go", here, expected));
        }
        if (row.isChain()) {
            try (CudaAllGatherMatmul whole = data.whole(row.type())) {
                DeviceMatrix expected = data.ownRows(whole.product(0), data.last());
                String what = "bits of one rank's product";
                checks.add(GpuJudge.sameBits(bench, what, op.product(0), expected));
            }
        }
        return checks;
    }

    /** A row from what was measured for it. Pure. */
    private static BenchRow row(
            Row of, Map<String, Samples> times, int copies, List<BenchRow.Check> checks) {
        GpuRow row = new GpuRow(ITEM, of.name(), "limit", times);
        double product = row.us(PRODUCT);
        double limit = Math.max(product, Math.max(row.us(IN), row.us(OUT)));
        double ofLimit = limit / row.us(PIPELINED);
        double ofBothWays = Math.max(product, row.us(MOVES)) / row.us(PIPELINED);
        row.put("ranks", of.ranks(), "m", M, "k", of.k(), "n", N)
                .put("limitUs", limit, "ofLimit", ofLimit, "ofBothWays", ofBothWays)
                .put("copies", copies, "needed", NEEDED)
                .needs(
                        ofLimit >= NEEDED,
                        "pipelined at %.3f of the limit, needed %.2f; at %.3f of product and"
                                + " copies both ways at once",
                        ofLimit,
                        NEEDED,
                        ofBothWays);
        return row.row(ofLimit, checks);
    }

    /** Each with new values and poisoned results. */
    private static BenchRow calls(GpuBench bench) throws IOException, InterruptedException {
        GpuCallsCase calls =
                new GpuCallsCase(
                        ITEM, "calls of chain, W 4, M 1024 K 512 a rank N 512, fp16", PIPELINED);
        return calls.attempt(
                bench,
                count -> {
                    try (GpuSumsData data =
                            new GpuSumsData(
                                    bench, DType.FP16, 1024, GpuSumsData.lastOf(4, 512), 512)) {
                        data.refill(0);
                        try (CudaMatmulReduce op = data.operator(Reduction.CHAIN)) {
                            return calls.measured(
                                    count,
                                    call -> {
                                        data.refill(call);
                                        data.place(op);
                                        bench.check().poison(op.product(0));
                                        return op.call(data.input(data.last())).elapsedNs();
                                    },
                                    () ->
                                            bench.check()
                                                    .product(
                                                            data.ownRows(data.a(), data.last()),
                                                            data.b(),
                                                            false,
                                                            op.product(0)));
                        }
                    }
                });
    }
}
