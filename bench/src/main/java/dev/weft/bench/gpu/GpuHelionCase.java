package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.compat.Helion;
import dev.weft.compat.HelionCuda;
import dev.weft.compat.HelionResult;
import dev.weft.compat.HelionShared;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.fabric.Fabric;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.io.IOException;
import java.util.List;
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
            GpuData data,
            Fabric fabric,
            GpuStream stream,
            HelionShared<DeviceMatrix> shared,
            CudaAllGatherMatmul operator)
            implements AutoCloseable {

        static Rank of(GpuData data, Fabric fabric) {
            long rows = data.shards.rows(fabric.rank());
            CudaAllGatherMatmul operator =
                    CudaAllGatherMatmul.on(fabric, data.bench.gpu())
                            .a(data.shards, DType.BF16)
                            .b(data.b(), false)
                            .output(DType.BF16)
                            .algorithm(Algorithm.MESH_PULL)
                            .prepare();
            Rank rank =
                    new Rank(
                            data,
                            fabric,
                            GpuStream.create(),
                            HelionCuda.empty(fabric, data.bench.gpu(), rows, K, DType.BF16),
                            operator);
            rank.place();
            operator.call(rank.shard());
            return rank;
        }

        private DeviceMatrix shard() {
            return data.shard(fabric.rank());
        }

        /** From now on every call finds the rows of now. */
        void place() {
            operator.call(shard());
            shared.local().copyFrom(shard(), stream);
            stream.synchronize();
        }

        HelionResult<DeviceMatrix> helion(String name) {
            Helion.Config config = name.equals(EXAMPLE) ? Helion.Config.EXAMPLE : null;
            return HelionCuda.allGatherMatmul(
                    fabric,
                    data.bench.gpu(),
                    shared,
                    data.b(),
                    false,
                    null,
                    null,
                    null,
                    1,
                    config,
                    stream);
        }

        long takeNs(String name) {
            if (name.equals(OPERATOR)) {
                operator.start(operator.nextShard(), stream, View.PIPELINED).await();
            } else {
                try (HelionResult<DeviceMatrix> result = helion(name)) {
                    result.await();
                }
            }
            return GpuRanks.BY_HOST;
        }

        @Override
        public void close() {
            operator.close();
            shared.close();
            stream.close();
        }
    }

    static void run(GpuBench bench, Consumer<BenchRow> sink)
            throws IOException, InterruptedException {
        for (int ranks : bench.quick() ? List.of(4) : List.of(4, 8)) {
            sink.accept(GpuRow.attempt(ITEM, name(ranks), () -> measured(bench, ranks)));
        }
    }

    private static String name(int ranks) {
        return "%d ranks on one GPU, M %d K %d N %d, bf16".formatted(ranks, M, K, N);
    }

    private static BenchRow measured(GpuBench bench, int count) {
        try (GpuData data = new GpuData(bench, DType.BF16, Shards.even(M, count), K, N)) {
            data.refill(1);
            try (GpuRanks<Rank> ranks =
                    new GpuRanks<>(bench, count, fabric -> Rank.of(data, fabric))) {
                Map<String, Samples> times =
                        ranks.take(
                                List.of(HELION, EXAMPLE, OPERATOR),
                                bench.quick() ? QUICK_WARMUP : WARMUP,
                                bench.iterations(),
                                Rank::takeNs);
                data.refill(2);
                GpuJudge judge = new GpuJudge(data);
                ranks.run(rank -> verify(rank, judge));
                return row(count, times, judge.checks());
            }
        }
    }

    /** All once more with other rows; every rank looks at its results in turn. */
    private static void verify(Rank rank, GpuJudge judge) {
        rank.place();
        for (String name : List.of(HELION, EXAMPLE)) {
            try (HelionResult<DeviceMatrix> result = rank.helion(name)) {
                result.await();
                for (int turn = 0; turn < rank.fabric.size(); turn++) {
                    if (turn == rank.fabric.rank()) {
                        String who = "rank " + turn + ", " + name;
                        judge.sameBits(who + ": gathered rows", result.aOut(), rank.data.a());
                        judge.sameBits(
                                who + ": bits of the operator",
                                result.c(),
                                rank.operator.product(0));
                        if (turn == 0) {
                            judge.product(who, result.c());
                        }
                    }
                    rank.fabric.barrier();
                }
            }
        }
    }

    /** A row from what was measured for it. Pure. */
    static BenchRow row(int ranks, Map<String, Samples> times, List<BenchRow.Check> checks) {
        GpuRow row = new GpuRow(ITEM, name(ranks), OPERATOR, times);
        double speed = row.us(OPERATOR) / row.us(HELION);
        row.put("ranks", ranks, "m", M, "k", K, "n", N, "speed", speed)
                .put("exampleSpeed", row.us(OPERATOR) / row.us(EXAMPLE), "needed", NEEDED)
                .needs("Helion's call", speed, "the operator's speed", NEEDED);
        return row.row(speed, checks);
    }
}
