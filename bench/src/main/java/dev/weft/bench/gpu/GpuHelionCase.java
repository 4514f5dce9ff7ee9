package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Interleaved;
import dev.weft.compat.Helion;
import dev.weft.compat.HelionCuda;
import dev.weft.compat.HelionResult;
import dev.weft.compat.HelionShared;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.op.Operator.View;
import dev.weft.plan.Algorithm;
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
 * The Helion example's call at its full size beside the operator that pulls as it does, both on
 * ranks that share the GPU. Used by one thread.
 */
final class GpuHelionCase {

    static final String ITEM = "helion";
    static final String HELION = "helion";
    static final String EXAMPLE = "example";
    static final String OPERATOR = "operator";

    private static final List<String> THINGS = List.of(HELION, EXAMPLE, OPERATOR);
    private static final long M = 4096;
    private static final long K = 16_384;
    private static final long N = 6656;

    /** Of the operator's speed at least. */
    private static final double NEEDED = 0.98;

    private static final int WARMUP = 20;
    private static final int QUICK_WARMUP = 3;

    private GpuHelionCase() {}

    /** What one rank calls. */
    private record Rank(
            Fabric fabric,
            GpuStream stream,
            HelionShared<DeviceMatrix> shared,
            CudaAllGatherMatmul operator) {

        void close() {
            operator.close();
            shared.close();
            stream.close();
        }
    }

    static void run(GpuBench bench, Consumer<BenchRow> sink)
            throws IOException, InterruptedException {
        for (int ranks : bench.quick() ? List.of(4) : List.of(4, 8)) {
            sink.accept(GpuCase.attempt(ITEM, name(ranks), () -> measured(bench, ranks)));
        }
    }

    private static String name(int ranks) {
        return "%d ranks on one GPU, M %d K %d N %d, bf16".formatted(ranks, M, K, N);
    }

    private static BenchRow measured(GpuBench bench, int ranks) {
        try (GpuData data = GpuData.of(bench, DType.BF16, Shards.even(M, ranks), K, N);
                World world = World.threads(ranks)) {
            data.refill(1);
            List<Rank> prepared = world.call(fabric -> prepare(bench, data, fabric));
            try {
                int warmup = bench.quick() ? QUICK_WARMUP : WARMUP;
                Map<String, Samples> times =
                        take(bench, data, world, prepared, warmup, bench.iterations());
                data.refill(2);
                GpuJudge judge = new GpuJudge(bench, data);
                world.run(fabric -> verify(bench, data, prepared.get(fabric.rank()), judge));
                return row(ranks, times, judge.checks());
            } finally {
                world.run(fabric -> prepared.get(fabric.rank()).close());
            }
        }
    }

    private static Rank prepare(GpuBench bench, GpuData data, Fabric fabric) {
        bench.gpu().bind();
        CudaAllGatherMatmul operator =
                CudaAllGatherMatmul.on(fabric, bench.gpu())
                        .a(data.shards(), DType.BF16)
                        .b(data.b(), false)
                        .output(DType.BF16)
                        .algorithm(Algorithm.MESH_PULL)
                        .prepare();
        Rank rank =
                new Rank(
                        fabric,
                        GpuStream.create(),
                        HelionCuda.empty(
                                fabric,
                                bench.gpu(),
                                data.shards().rows(fabric.rank()),
                                K,
                                DType.BF16),
                        operator);
        operator.call(data.shard(fabric.rank()));
        operator.call(data.shard(fabric.rank()));
        rank.shared().local().copyFrom(data.shard(fabric.rank()), rank.stream());
        rank.stream().synchronize();
        return rank;
    }

    /** By the host's clock, from the first rank's start to the end of the last one's product. */
    private static Map<String, Samples> take(
            GpuBench bench,
            GpuData data,
            World world,
            List<Rank> prepared,
            int warmup,
            int rounds) {
        int ranks = prepared.size();
        long[][][] startNs = new long[THINGS.size()][rounds][ranks];
        long[][][] endNs = new long[THINGS.size()][rounds][ranks];
        world.run(
                fabric -> {
                    bench.gpu().bind();
                    int rank = fabric.rank();
                    for (int round = -warmup; round < rounds; round++) {
                        int sample = Math.max(0, round);
                        for (int position = 0; position < THINGS.size(); position++) {
                            int thing = Interleaved.thing(round, position, THINGS.size());
                            fabric.barrier();
                            startNs[thing][sample][rank] = System.nanoTime();
                            call(bench, data, prepared.get(rank), THINGS.get(thing));
                            endNs[thing][sample][rank] = System.nanoTime();
                        }
                    }
                });
        Map<String, Samples> times = new LinkedHashMap<>();
        for (int thing = 0; thing < THINGS.size(); thing++) {
            long[] wallNs = new long[rounds];
            for (int round = 0; round < rounds; round++) {
                wallNs[round] = GpuSharedRanks.wallNs(startNs[thing][round], endNs[thing][round]);
            }
            times.put(THINGS.get(thing), Samples.ofNs(wallNs));
        }
        return times;
    }

    private static void call(GpuBench bench, GpuData data, Rank rank, String thing) {
        if (thing.equals(OPERATOR)) {
            CudaAllGatherMatmul operator = rank.operator();
            operator.start(operator.nextShard(), rank.stream(), View.PIPELINED).await();
        } else {
            try (HelionResult<DeviceMatrix> result = helion(bench, data, rank, thing)) {
                result.await();
            }
        }
    }

    private static HelionResult<DeviceMatrix> helion(
            GpuBench bench, GpuData data, Rank rank, String thing) {
        return HelionCuda.allGatherMatmul(
                rank.fabric(),
                bench.gpu(),
                rank.shared(),
                data.b(),
                false,
                null,
                null,
                null,
                1,
                thing.equals(EXAMPLE) ? Helion.Config.EXAMPLE : null,
                rank.stream());
    }

    /** All once more with other rows; the first rank looks at every rank's results in turn. */
    private static void verify(GpuBench bench, GpuData data, Rank rank, GpuJudge judge) {
        bench.gpu().bind();
        Fabric fabric = rank.fabric();
        rank.shared().local().copyFrom(data.shard(fabric.rank()), rank.stream());
        rank.operator().call(data.shard(fabric.rank()));
        for (String thing : List.of(HELION, EXAMPLE)) {
            try (HelionResult<DeviceMatrix> result = helion(bench, data, rank, thing)) {
                result.await();
                for (int turn = 0; turn < fabric.size(); turn++) {
                    if (turn == fabric.rank()) {
                        String who = "rank " + turn + ", " + thing;
                        judge.sameBits(who + ": gathered rows", result.aOut(), data.a());
                        judge.sameBits(
                                who + ": bits of the operator",
                                result.c(),
                                rank.operator().product(0));
                        if (turn == 0) {
                            judge.product(who, result.c());
                        }
                    }
                    fabric.barrier();
                }
            }
        }
    }

    /** A row from what was measured for it. Pure. */
    static BenchRow row(int ranks, Map<String, Samples> times, List<BenchRow.Check> checks) {
        double speed = times.get(OPERATOR).median() / times.get(HELION).median();
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("ranks", (double) ranks);
        figures.put("m", (double) M);
        figures.put("k", (double) K);
        figures.put("n", (double) N);
        figures.put("speed", speed);
        figures.put("exampleSpeed", times.get(OPERATOR).median() / times.get(EXAMPLE).median());
        figures.put("needed", NEEDED);
        List<String> misses = new ArrayList<>();
        if (!(speed >= NEEDED)) {
            misses.add(
                    String.format(
                            Locale.ROOT,
                            "Helion's call at %.3f of the operator's speed, needed %.2f",
                            speed,
                            NEEDED));
        }
        return new BenchRow(
                ITEM,
                name(ranks),
                OPERATOR,
                speed,
                GpuCase.figures(figures, times),
                checks,
                misses);
    }
}
