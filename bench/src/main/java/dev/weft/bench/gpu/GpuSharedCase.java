package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Interleaved;
import dev.weft.bench.measure.Resources;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.fabric.Fabric;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * Ranks that share one GPU, all of whose products must be finished, beside as many products of
 * cuBLAS. Used by one thread.
 */
final class GpuSharedCase {

    static final String ITEM = "shared";
    static final String CUBLAS = "cublas";

    private static final String AUTO = "auto";

    /** What takes turns besides cuBLAS, Weft's own choice first. */
    private static final Map<String, Algorithm> ALGORITHMS = algorithms();

    private static final long M = 8192;
    private static final long K = 4096;
    private static final long N = 4096;

    /** So many times the products' own time at most. */
    private static final double NEEDED = 1.2;

    /** Enough for the JVM to compile what issues calls. */
    static final int WARMUP = 200;

    static final int QUICK_WARMUP = 5;

    private static final int FUSED_WARMUP = 2;
    private static final long TIMED_SEED = 21;
    private static final long VERIFIED_SEED = 22;

    private GpuSharedCase() {}

    private static Map<String, Algorithm> algorithms() {
        Map<String, Algorithm> all = new LinkedHashMap<>();
        all.put(AUTO, Algorithm.AUTO);
        all.put("meshPull", Algorithm.MESH_PULL);
        all.put("ring", Algorithm.RING);
        return all;
    }

    /** One rank's operators by name, with its rows in both places. */
    private record Rank(
            int number,
            Map<String, CudaAllGatherMatmul> operators,
            GpuStream stream,
            Resources opened)
            implements AutoCloseable {

        static Rank of(GpuBench bench, GpuData data, Fabric fabric) {
            Resources opened = new Resources();
            Map<String, CudaAllGatherMatmul> operators = new LinkedHashMap<>();
            ALGORITHMS.forEach(
                    (name, algorithm) -> {
                        CudaAllGatherMatmul operator =
                                opened.add(
                                        CudaAllGatherMatmul.on(fabric, bench.gpu())
                                                .a(data.shards, data.a().dtype())
                                                .b(data.b(), false)
                                                .output(data.a().dtype())
                                                .algorithm(algorithm)
                                                .prepare());
                        operator.call(data.shard(fabric.rank()));
                        operator.call(data.shard(fabric.rank()));
                        operators.put(name, operator);
                    });
            return new Rank(fabric.rank(), operators, opened.add(GpuStream.create()), opened);
        }

        @Override
        public void close() {
            opened.close();
        }
    }

    static void run(GpuBench bench, Consumer<BenchRow> sink)
            throws IOException, InterruptedException {
        for (int ranks : bench.quick() ? List.of(2) : List.of(2, 4, 8)) {
            sink.accept(GpuRow.attempt(ITEM, name(ranks), () -> measured(bench, ranks)));
        }
    }

    private static String name(int ranks) {
        return "%d ranks on one GPU, M %d K %d N %d, bf16".formatted(ranks, M, K, N);
    }

    private static BenchRow measured(GpuBench bench, int count)
            throws IOException, InterruptedException {
        try (GpuData data = new GpuData(bench, DType.BF16, Shards.even(M, count), K, N);
                GpuCublas cublas = data.cublas(DType.BF16)) {
            data.refill(TIMED_SEED);
            try (GpuRanks<Rank> ranks =
                    new GpuRanks<>(bench, count, fabric -> Rank.of(bench, data, fabric))) {
                List<String> names =
                        Stream.concat(Stream.of(CUBLAS), ALGORITHMS.keySet().stream()).toList();
                Map<String, Samples> times =
                        ranks.take(
                                names,
                                bench.quick() ? QUICK_WARMUP : WARMUP,
                                bench.iterations(),
                                (rank, name) -> takeNs(cublas, rank, name));
                takeFused(bench, data, times);
                String automatic = ranks.all().getFirst().operators.get(AUTO).plan().name();
                return row(count, automatic, times, verify(bench, data, ranks));
            }
        }
    }

    /** cuBLAS's product on the device; of the algorithms, the time until all ranks have theirs. */
    private static long takeNs(GpuCublas cublas, Rank rank, String name) {
        if (name.equals(CUBLAS)) {
            return rank.number == 0 ? cublas.takeNs() : GpuRanks.BY_HOST;
        }
        CudaAllGatherMatmul operator = rank.operators.get(name);
        operator.start(operator.nextShard(), rank.stream, View.PIPELINED).await();
        return GpuRanks.BY_HOST;
    }

    /** After the others: PyTorch's ranks are processes, which share the GPU by time slices. */
    private static void takeFused(GpuBench bench, GpuData data, Map<String, Samples> times)
            throws IOException, InterruptedException {
        if (bench.pytorch().isPresent()) {
            GpuPytorch pytorch = bench.pytorch().get();
            if (pytorch.openFused(data.shards.ranks(), M, K, N)) {
                Map<String, Interleaved.Turn> turn = Map.of(GpuPytorch.FUSED, pytorch::takeFusedNs);
                times.putAll(GpuRow.take(turn, FUSED_WARMUP, bench.iterations()));
            }
            pytorch.free();
        }
    }

    /** Calls every operator once more with other rows, and looks at every rank's product. */
    private static List<BenchRow.Check> verify(GpuBench bench, GpuData data, GpuRanks<Rank> ranks) {
        data.refill(VERIFIED_SEED);
        ranks.all()
                .forEach(
                        rank ->
                                rank.operators
                                        .values()
                                        .forEach(op -> bench.check().poison(op.product(0))));
        ranks.run(rank -> rank.operators.values().forEach(op -> op.call(data.shard(rank.number))));
        GpuJudge judge = new GpuJudge(data);
        CudaAllGatherMatmul first = ranks.all().getFirst().operators.get(AUTO);
        judge.float64("rank 0, " + AUTO, first.product(0));
        for (Rank rank : ranks.all()) {
            rank.operators.forEach(
                    (name, operator) -> {
                        String who = "rank " + rank.number + ", " + name;
                        judge.product(who, operator.product(0));
                        judge.gathered(who, operator);
                        if (operator != first) {
                            judge.sameBits(
                                    who + ": bits of rank 0's auto",
                                    operator.product(0),
                                    first.product(0));
                        }
                    });
        }
        return judge.checks();
    }

    /**
     * A row from what was measured for it. Pure.
     *
     * @param automatic what Weft chose
     */
    static BenchRow row(
            int ranks, String automatic, Map<String, Samples> times, List<BenchRow.Check> checks) {
        GpuRow row = new GpuRow(ITEM, name(ranks) + ", " + automatic, "cuBLAS", times);
        double products = ranks * row.us(CUBLAS);
        row.put("ranks", ranks, "m", M, "k", K, "n", N, "productsUs", products);
        for (String name : ALGORITHMS.keySet()) {
            row.put(name + "OverProducts", row.us(name) / products);
        }
        double over = row.us(AUTO) / products;
        row.put("needed", NEEDED)
                .needs(
                        over <= NEEDED,
                        "%s takes %.3f times the products' own time, needed %.1f at most",
                        automatic,
                        over,
                        NEEDED);
        return row.row(1 / over, checks);
    }
}
