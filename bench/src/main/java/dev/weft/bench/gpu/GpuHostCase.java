package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Interleaved;
import dev.weft.bench.measure.Resources;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaMatmulReduce;
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
import java.util.function.Supplier;

/**
 * What a call costs the host: queued, with its A in the operator's memory or copied there, and as a
 * launch of a graph, in which it was captured. By the host's clock, from the call of the method to
 * its return; the GPU is idle before. Used by one thread.
 */
final class GpuHostCase {

    static final String ITEM = "host";
    static final String QUEUED = "queued";
    static final String COPIED = "copied";
    static final String REPLAYED = "replayed";

    private static final double MOST_QUEUED_US = 10;
    private static final double MOST_REPLAYED_US = 3;
    private static final int WARMUP = 2000;
    private static final long ROWS = 16;
    private static final long SIZE = 4096;

    private GpuHostCase() {}

    /** Queues one call on the bench's stream. */
    private interface Call {
        Runnable start();
    }

    static void run(GpuBench bench, Consumer<BenchRow> sink)
            throws IOException, InterruptedException {
        sink.accept(GpuRow.attempt(ITEM, name("gather"), () -> gathers(bench)));
        sink.accept(GpuRow.attempt(ITEM, name("reduce-scatter"), () -> sums(bench)));
    }

    private static String name(String op) {
        return "%s of %d rows, W 2, K %d N %d, bf16".formatted(op, ROWS, SIZE, SIZE);
    }

    private static BenchRow gathers(GpuBench bench) throws IOException, InterruptedException {
        try (GpuData data = new GpuData(bench, DType.BF16, Shards.even(ROWS, 2), SIZE, SIZE);
                CudaAllGatherMatmul op = data.operator().prepare()) {
            data.refill(1);
            data.placePeers(op);
            DeviceMatrix a = data.shard(0);
            return measured(
                    bench,
                    name("gather"),
                    () -> op.start(op.nextShard(), bench.stream(), View.PIPELINED)::await,
                    () -> op.start(a, bench.stream(), View.PIPELINED)::await,
                    () -> op.product(0),
                    op::checkReplays);
        }
    }

    private static BenchRow sums(GpuBench bench) throws IOException, InterruptedException {
        try (GpuSumsData data =
                new GpuSumsData(bench, DType.BF16, ROWS, GpuSumsData.lastOf(2, SIZE), SIZE)) {
            data.refill(1);
            try (CudaMatmulReduce op = data.operator(Reduction.CHAIN)) {
                DeviceMatrix a = data.input(data.last());
                return measured(
                        bench,
                        name("reduce-scatter"),
                        () -> op.start(op.nextShard(), bench.stream(), View.PIPELINED)::await,
                        () -> op.start(a, bench.stream(), View.PIPELINED)::await,
                        () -> op.product(0),
                        op::checkReplays);
            }
        }
    }

    /**
     * @param inPlace A is where it was in the call before the last
     * @param result of the latest call
     */
    private static BenchRow measured(
            GpuBench bench,
            String name,
            Call inPlace,
            Call call,
            Supplier<DeviceMatrix> result,
            Runnable check)
            throws IOException, InterruptedException {
        call.start().run();
        call.start().run();
        DeviceMatrix first = result.get();
        try (Resources opened = new Resources();
                var graph = bench.stream().capture(call::start)) {
            DeviceMatrix expected =
                    GpuOperands.matrix(opened, first.dtype(), first.rows(), first.cols());
            expected.copyFrom(first, bench.stream());
            bench.stream().synchronize();
            bench.check().poison(first);
            Map<String, Interleaved.Turn> turns = new LinkedHashMap<>();
            turns.put(QUEUED, () -> queued(bench, inPlace));
            turns.put(COPIED, () -> queued(bench, call));
            turns.put(
                    REPLAYED,
                    () -> {
                        long start = System.nanoTime();
                        graph.launch(bench.stream());
                        long ns = System.nanoTime() - start;
                        bench.stream().synchronize();
                        return ns;
                    });
            Map<String, Samples> times =
                    GpuRow.take(turns, bench.quick() ? 3 : WARMUP, bench.iterations());
            graph.launch(bench.stream());
            bench.stream().synchronize();
            check.run();
            DeviceMatrix replayed = result.get();
            long unlike = bench.check().equal(replayed, expected).mismatches();
            return row(
                    name,
                    times,
                    List.of(
                            new BenchRow.Check(
                                    "bits of a launch", unlike == 0, unlike + " elements differ")));
        }
    }

    private static long queued(GpuBench bench, Call call) {
        long start = System.nanoTime();
        Runnable await = call.start();
        long ns = System.nanoTime() - start;
        await.run();
        bench.stream().synchronize();
        return ns;
    }

    /** A row from what was measured for it. Pure. */
    static BenchRow row(String name, Map<String, Samples> times, List<BenchRow.Check> checks) {
        GpuRow row = new GpuRow(ITEM, name, QUEUED, times);
        double queued = row.us(QUEUED);
        double replayed = row.us(REPLAYED);
        return row.put("gain", queued / replayed)
                .needs(
                        queued <= MOST_QUEUED_US,
                        "queued in %.1f us, needed %.0f",
                        queued,
                        MOST_QUEUED_US)
                .needs(
                        replayed <= MOST_REPLAYED_US,
                        "replayed in %.1f us, needed %.0f",
                        replayed,
                        MOST_REPLAYED_US)
                .row(queued / replayed, checks);
    }
}
