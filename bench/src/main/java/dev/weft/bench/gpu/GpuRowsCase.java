package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Interleaved;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaMatmulReduce;
import dev.weft.op.Operator;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * Calls of fewer rows than an operator was prepared for, beside operators for just these rows: with
 * the same rows as in the call before, and with others. Used by one thread.
 */
final class GpuRowsCase {

    static final String ITEM = "rows";
    static final String EXACT = "exact";
    static final String PREPARED = "prepared";
    static final String CHANGED = "changed";

    /** At most 1.03 times as long. */
    private static final double NEEDED = 1 / 1.03;

    private static final int MOST = 2048;
    private static final List<Integer> ROWS = List.of(1, 7, 16, 100, 1000, MOST);
    private static final int RANKS = 2;
    private static final long SIZE = 4096;
    private static final long SEED = 5;
    private static final int WARMUP = 1000;

    private GpuRowsCase() {}

    static void run(GpuBench bench, Consumer<BenchRow> sink)
            throws IOException, InterruptedException {
        for (int rows : bench.quick() ? ROWS.subList(0, 2) : ROWS) {
            sink.accept(
                    GpuRow.attempt(
                            ITEM,
                            name("gather", rows),
                            () -> gathers(bench, rows, name("gather", rows))));
        }
        for (int rows : bench.quick() ? ROWS.subList(0, 2) : ROWS) {
            sink.accept(
                    GpuRow.attempt(
                            ITEM,
                            name("reduce-scatter", rows),
                            () -> sums(bench, rows, name("reduce-scatter", rows))));
        }
    }

    private static String name(String op, int rows) {
        return "%s of %d rows, prepared for %d, W %d, K %d N %d, bf16"
                .formatted(op, rows, MOST, RANKS, SIZE, SIZE);
    }

    private static BenchRow gathers(GpuBench bench, int rows, String name)
            throws IOException, InterruptedException {
        try (GpuData all = data(bench, MOST);
                GpuData some = data(bench, rows);
                CudaAllGatherMatmul prepared = all.operator().prepare();
                CudaAllGatherMatmul exact = some.operator().prepare()) {
            some.refill(SEED);
            some.placePeers(exact);
            Shards shards = Shards.even(rows, RANKS);
            some.shard(1).download(prepared.peerShard(1, shards), bench.stream());
            return measured(bench, name, rows, prepared, exact, shards, some::shard);
        }
    }

    private static GpuData data(GpuBench bench, int rows) {
        return new GpuData(bench, DType.BF16, Shards.even(rows, RANKS), SIZE, SIZE);
    }

    private static BenchRow sums(GpuBench bench, int rows, String name)
            throws IOException, InterruptedException {
        try (GpuSumsData all = sumsData(bench, MOST);
                GpuSumsData some = sumsData(bench, rows)) {
            all.refill(SEED);
            some.refill(SEED);
            try (CudaMatmulReduce prepared = all.operator(Reduction.CHAIN);
                    CudaMatmulReduce exact = some.operator(Reduction.CHAIN)) {
                Shards shards = Shards.even(rows, RANKS);
                exact.incoming(0, Reduction.PARTIAL)
                        .ifPresent(
                                from ->
                                        prepared.incoming(0, Reduction.PARTIAL)
                                                .orElseThrow()
                                                .rows(0, from.rows())
                                                .copyFrom(from));
                return measured(
                        bench, name, rows, prepared, exact, shards, r -> some.input(some.last()));
            }
        }
    }

    private static GpuSumsData sumsData(GpuBench bench, int rows) {
        return new GpuSumsData(bench, DType.BF16, rows, GpuSumsData.lastOf(RANKS, SIZE), SIZE);
    }

    private static BenchRow measured(
            GpuBench bench,
            String name,
            int rows,
            Operator<DeviceMatrix> prepared,
            Operator<DeviceMatrix> exact,
            Shards shards,
            Function<Integer, DeviceMatrix> shard)
            throws IOException, InterruptedException {
        DeviceMatrix a = shard.apply(0);
        long other = rows == 1 ? 2 : rows - 1;
        Shards others = Shards.even(other, RANKS);
        Map<String, Interleaved.Turn> turns = new LinkedHashMap<>();
        turns.put(EXACT, () -> exact.call(a).elapsedNs());
        turns.put(PREPARED, () -> prepared.call(a, shards).elapsedNs());
        turns.put(
                CHANGED,
                () -> {
                    prepared.callInPlace(View.PIPELINED, others);
                    return prepared.call(a, shards).elapsedNs();
                });
        // A server's code is compiled by then.
        Map<String, Samples> times =
                GpuRow.take(turns, bench.quick() ? 3 : WARMUP, bench.iterations());
        long unlike =
                bench.check()
                        .equal(prepared.lastResult().product(0), exact.lastResult().product(0))
                        .mismatches();
        return row(
                name,
                rows,
                times,
                List.of(
                        new BenchRow.Check(
                                "bits", unlike == 0, unlike + " elements of other bits")));
    }

    /** A row from what was measured for it. Pure. */
    static BenchRow row(
            String name, int rows, Map<String, Samples> times, List<BenchRow.Check> checks) {
        GpuRow row = new GpuRow(ITEM, name, "an operator for these rows", times);
        double speed = row.us(EXACT) / row.us(PREPARED);
        return row.put(
                        "rows",
                        rows,
                        "speed",
                        speed,
                        "changedSpeed",
                        row.us(EXACT) / row.us(CHANGED),
                        "needed",
                        NEEDED)
                .needs("the operator for more rows", speed, "one for these", NEEDED)
                .row(speed, checks);
    }
}
