package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Resources;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaMatmulReduce;
import dev.weft.fabric.Fabric;
import dev.weft.op.Epilogue;
import dev.weft.op.Operator.PendingCall;
import dev.weft.plan.Shards;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Ranks that share one GPU and sum their products, compared with as many products of one rank's
 * part of K in a row. Where all ranks get all rows, each row is copied to all but one of them, so
 * those copies alone are measured too. Used by one thread.
 */
final class GpuSharedSumsCase {

    static final String ITEM = "shared-sums";
    static final String PRODUCTS = "products";
    static final String COPIES = "copies";
    static final String SCATTER = "scatter";
    static final String ALL = "all";

    private static final long M = 8192;
    private static final long K = 4096;
    private static final long N = 8192;

    /** So many times the products' own time at most, and that of the copies. */
    private static final double NEEDED = 1.2;

    private static final long SEED = 41;

    private GpuSharedSumsCase() {}

    /** What one rank calls. */
    private record Rank(int number, GpuStream stream, CudaMatmulReduce operator)
            implements AutoCloseable {

        static Rank of(
                GpuBench bench, GpuSumsData data, boolean all, Epilogue epilogue, Fabric fabric) {
            int number = fabric.rank();
            CudaMatmulReduce operator =
                    CudaMatmulReduce.on(fabric, bench.gpu(), all)
                            .a(data.shards, data.kParts(), data.b().dtype())
                            .b(data.b(number), false)
                            .output(data.b().dtype())
                            .epilogue(epilogue)
                            .prepare();
            operator.call(data.input(number));
            operator.call(data.input(number));
            return new Rank(number, GpuStream.create(), operator);
        }

        @Override
        public void close() {
            operator.close();
            stream.close();
        }
    }

    static void run(GpuBench bench, Consumer<BenchRow> sink)
            throws IOException, InterruptedException {
        for (int ranks : bench.quick() ? List.of(2) : List.of(2, 4, 8)) {
            sink.accept(GpuRow.attempt(ITEM, name(ranks), () -> measured(bench, ranks)));
        }
    }

    private static String name(int ranks) {
        return "%d ranks on one GPU, M %d K %d a rank N %d, bf16".formatted(ranks, M, K, N);
    }

    private static BenchRow measured(GpuBench bench, int ranks) {
        Shards kParts = Shards.even(ranks * K, ranks);
        try (GpuSumsData data = new GpuSumsData(bench, DType.BF16, M, kParts, N);
                Resources opened = new Resources()) {
            data.refill(SEED);
            CudaAllGatherMatmul whole = opened.add(data.whole(DType.BF16));
            CudaAllGatherMatmul part = opened.add(data.alone(0, K, DType.BF16));
            part.call(data.input(0));
            Map<String, Samples> times = new LinkedHashMap<>();
            times.put(PRODUCTS, inARow(bench, () -> multiply(bench, part, ranks)));
            DeviceMatrix c = part.product(0);
            DeviceMatrix to = GpuOperands.matrix(opened, c.dtype(), c.rows(), c.cols());
            times.put(COPIES, inARow(bench, () -> copy(bench, c, to, ranks - 1)));
            List<BenchRow.Check> checks = new ArrayList<>();
            for (String what : List.of(SCATTER, ALL)) {
                boolean all = what.equals(ALL);
                Epilogue none = Epilogue.none();
                times.putAll(take(bench, data, what, all, none, whole.product(0), checks));
            }
            return row(ranks, times, checks);
        }
    }

    private static int warmup(GpuBench bench) {
        return bench.quick() ? GpuSharedCase.QUICK_WARMUP : GpuSharedCase.WARMUP;
    }

    /** By the host's clock, as the ranks' calls are, and with a card that is as warm. */
    private static Samples inARow(GpuBench bench, Runnable work) {
        long[] ns = new long[bench.iterations()];
        for (int round = -warmup(bench); round < ns.length; round++) {
            long start = System.nanoTime();
            work.run();
            bench.stream().synchronize();
            ns[Math.max(0, round)] = System.nanoTime() - start;
        }
        return Samples.ofNs(ns);
    }

    /** So many products, each queued while the one before it runs. */
    private static void multiply(GpuBench bench, CudaAllGatherMatmul part, int products) {
        PendingCall<DeviceMatrix> before = null;
        for (int i = 0; i < products; i++) {
            PendingCall<DeviceMatrix> next =
                    part.start(part.nextShard(), bench.stream(), View.PIPELINED);
            if (before != null) {
                before.await();
            }
            before = next;
        }
        before.await();
    }

    private static void copy(GpuBench bench, DeviceMatrix from, DeviceMatrix to, int times) {
        for (int i = 0; i < times; i++) {
            to.copyFrom(from, bench.stream());
        }
    }

    /** By the host's clock, until all ranks have their rows. */
    static Map<String, Samples> take(
            GpuBench bench,
            GpuSumsData data,
            String what,
            boolean all,
            Epilogue epilogue,
            DeviceMatrix expected,
            List<BenchRow.Check> checks) {
        int count = data.shards.ranks();
        try (GpuRanks<Rank> ranks =
                new GpuRanks<>(
                        bench, count, fabric -> Rank.of(bench, data, all, epilogue, fabric))) {
            Map<String, Samples> times =
                    ranks.take(
                            List.of(what),
                            warmup(bench),
                            bench.iterations(),
                            (rank, name) -> {
                                CudaMatmulReduce op = rank.operator;
                                op.start(op.nextShard(), rank.stream, View.PIPELINED).await();
                                return GpuRanks.BY_HOST;
                            });
            for (Rank rank : ranks.all()) {
                checks.add(
                        GpuJudge.sameBits(
                                bench,
                                "rank %d, %s: bits of one rank's product"
                                        .formatted(rank.number, what),
                                rank.operator.product(0),
                                all ? expected : data.ownRows(expected, rank.number)));
            }
            return times;
        }
    }

    /** A row from what was measured for it. Pure. */
    private static BenchRow row(
            int ranks, Map<String, Samples> times, List<BenchRow.Check> checks) {
        GpuRow row = new GpuRow(ITEM, name(ranks), "the products in a row", times);
        double products = row.us(PRODUCTS);
        double scatter = row.us(SCATTER) / products;
        double all = row.us(ALL) / (products + row.us(COPIES));
        row.put("ranks", ranks, "needed", NEEDED, "scatterOverProducts", scatter)
                .put("allOverProducts", row.us(ALL) / products, "allOverBound", all);
        needs(row, SCATTER, scatter);
        needs(row, ALL, all);
        return row.row(1 / scatter, checks);
    }

    private static void needs(GpuRow row, String what, double over) {
        row.needs(
                over <= NEEDED,
                "%s takes %.3f times as long as its products and copies alone, needed %.1f at most",
                what,
                over,
                NEEDED);
    }
}
