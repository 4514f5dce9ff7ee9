package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Resources;
import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaMatmulReduce;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.op.Operator.PendingCall;
import dev.weft.op.Operator.View;
import dev.weft.plan.Shards;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
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

    private static final int WARMUP = 200;

    private static final int QUICK_WARMUP = 5;
    private static final long SEED = 41;

    private GpuSharedSumsCase() {}

    static void run(GpuBench bench, Consumer<BenchRow> sink)
            throws IOException, InterruptedException {
        for (int ranks : bench.quick() ? List.of(2) : List.of(2, 4, 8)) {
            sink.accept(GpuCase.attempt(ITEM, name(ranks), () -> measured(bench, ranks)));
        }
    }

    private static String name(int ranks) {
        return "%d ranks on one GPU, M %d K %d a rank N %d, bf16".formatted(ranks, M, K, N);
    }

    private static BenchRow measured(GpuBench bench, int ranks) {
        try (Resources opened = new Resources()) {
            long k = ranks * K;
            DeviceMatrix a = filled(bench, opened, M, k, SEED);
            DeviceMatrix b = filled(bench, opened, k, N, SEED + 1);
            CudaAllGatherMatmul whole = alone(bench, opened, a, b);
            CudaAllGatherMatmul part = alone(bench, opened, columns(a, 0, K), b.rows(0, K));
            Map<String, Samples> times = new LinkedHashMap<>();
            times.put(PRODUCTS, inARow(bench, () -> multiply(bench, part, ranks)));
            DeviceMatrix c = part.product(0);
            DeviceMatrix to =
                    DeviceMatrix.in(
                            opened.add(DeviceBuffer.allocate(c.rows() * c.pitchBytes())),
                            c.dtype(),
                            c.rows(),
                            c.cols());
            times.put(COPIES, inARow(bench, () -> copy(bench, c, to, ranks - 1)));
            List<BenchRow.Check> checks = new ArrayList<>();
            for (boolean all : new boolean[] {false, true}) {
                String what = all ? ALL : SCATTER;
                times.put(what, take(bench, ranks, a, b, all, whole.product(0), checks));
            }
            return row(ranks, times, checks);
        }
    }

    /** By the host's clock, as the ranks' calls are, and with a card that is as warm. */
    private static Samples inARow(GpuBench bench, Runnable work) {
        int warmup = bench.quick() ? QUICK_WARMUP : WARMUP;
        long[] ns = new long[bench.iterations()];
        for (int round = -warmup; round < ns.length; round++) {
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

    private static DeviceMatrix filled(
            GpuBench bench, Resources opened, long rows, long cols, long seed) {
        long bytes = DeviceMatrix.alignedBytes(DType.BF16, rows, cols);
        DeviceBuffer buffer = opened.add(DeviceBuffer.allocate(bytes));
        DeviceMatrix matrix = DeviceMatrix.in(buffer, DType.BF16, rows, cols);
        bench.check().fillNormal(matrix, seed, 1f);
        return matrix;
    }

    private static DeviceMatrix columns(DeviceMatrix of, long first, long count) {
        return new DeviceMatrix(of.at(0, first), of.dtype(), of.rows(), count, of.rowPitch());
    }

    /** One rank's product, which has been called twice. */
    private static CudaAllGatherMatmul alone(
            GpuBench bench, Resources opened, DeviceMatrix a, DeviceMatrix b) {
        CudaAllGatherMatmul operator =
                opened.add(
                        CudaAllGatherMatmul.withHostPeers(bench.gpu(), 0)
                                .a(Shards.of(a.rows()), a.dtype())
                                .b(b, false)
                                .output(b.dtype())
                                .deadline(GpuBench.DEADLINE)
                                .prepare());
        operator.call(a);
        operator.call(a);
        return operator;
    }

    /** By the host's clock, until all ranks have their rows. */
    private static Samples take(
            GpuBench bench,
            int ranks,
            DeviceMatrix a,
            DeviceMatrix b,
            boolean all,
            DeviceMatrix expected,
            List<BenchRow.Check> checks) {
        int rounds = bench.iterations();
        int warmup = bench.quick() ? QUICK_WARMUP : WARMUP;
        long[][] startNs = new long[rounds][ranks];
        long[][] endNs = new long[rounds][ranks];
        Shards rows = Shards.even(M, ranks);
        try (World world = World.threads(ranks, GpuBench.DEADLINE)) {
            world.run(
                    fabric -> {
                        bench.gpu().bind();
                        int rank = fabric.rank();
                        try (GpuStream stream = GpuStream.create();
                                CudaMatmulReduce op = operator(bench, fabric, b, all)) {
                            op.call(columns(a, rank * K, K));
                            op.call(columns(a, rank * K, K));
                            for (int round = -warmup; round < rounds; round++) {
                                fabric.barrier();
                                startNs[Math.max(0, round)][rank] = System.nanoTime();
                                op.start(op.nextShard(), stream, View.PIPELINED).await();
                                endNs[Math.max(0, round)][rank] = System.nanoTime();
                            }
                            fabric.barrier();
                            synchronized (checks) {
                                DeviceMatrix own =
                                        all
                                                ? expected
                                                : expected.rows(
                                                        rows.firstRow(rank), rows.rows(rank));
                                DeviceCheck.Verdict verdict =
                                        bench.check().equal(op.product(0), own);
                                checks.add(
                                        new BenchRow.Check(
                                                "rank %d, %s: bits of one rank's product"
                                                        .formatted(rank, all ? ALL : SCATTER),
                                                verdict.passed(),
                                                verdict.toString()));
                            }
                            fabric.barrier();
                        }
                    });
        }
        long[] wallNs = new long[rounds];
        for (int round = 0; round < rounds; round++) {
            wallNs[round] = GpuSharedRanks.wallNs(startNs[round], endNs[round]);
        }
        return Samples.ofNs(wallNs);
    }

    private static CudaMatmulReduce operator(
            GpuBench bench, Fabric fabric, DeviceMatrix b, boolean all) {
        int ranks = fabric.size();
        return CudaMatmulReduce.on(fabric, bench.gpu(), all)
                .a(Shards.even(M, ranks), Shards.even(ranks * K, ranks), b.dtype())
                .b(b.rows(fabric.rank() * K, K), false)
                .output(b.dtype())
                .prepare();
    }

    /** A row from what was measured for it. Pure. */
    private static BenchRow row(
            int ranks, Map<String, Samples> times, List<BenchRow.Check> checks) {
        double products = times.get(PRODUCTS).median();
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("ranks", (double) ranks);
        figures.put("needed", NEEDED);
        Map<String, Double> bounds =
                Map.of(SCATTER, products, ALL, products + times.get(COPIES).median());
        List<String> misses = new ArrayList<>();
        for (String what : List.of(SCATTER, ALL)) {
            double us = times.get(what).median();
            double over = us / bounds.get(what);
            figures.put(what + "OverProducts", us / products);
            if (what.equals(ALL)) {
                figures.put("allOverBound", over);
            }
            if (!(over <= NEEDED)) {
                misses.add(
                        String.format(
                                Locale.ROOT,
                                "%s takes %.3f times as long as its products and copies alone, needed %.1f at most",
                                what,
                                over,
                                NEEDED));
            }
        }
        return new BenchRow(
                ITEM,
                name(ranks),
                "the products in a row",
                1 / figures.get(SCATTER + "OverProducts"),
                GpuCase.figures(figures, times),
                checks,
                misses);
    }
}
