package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Interleaved;
import dev.weft.bench.measure.Resources;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.op.Operator.View;
import dev.weft.plan.Algorithm;
import dev.weft.report.Samples;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;

/**
 * Ranks that are threads of this JVM and share the GPU, with an operator per algorithm, and cuBLAS
 * with one product. They take turns. Used by one thread, while the ranks' own are at rest.
 */
final class GpuSharedRanks implements AutoCloseable {

    static final String CUBLAS = "cublas";

    private static final int FUSED_WARMUP = 2;

    /** Weft's own choice first. */
    static final List<Algorithm> ALGORITHMS =
            List.of(Algorithm.AUTO, Algorithm.MESH_PULL, Algorithm.RING);

    private final GpuBench bench;
    private final GpuData data;
    private final GpuCublas cublas;
    private final World world;
    private final List<GpuStream> streams = new ArrayList<>();
    private final Resources opened = new Resources();

    /** By rank and algorithm. */
    private final List<List<CudaAllGatherMatmul>> operators;

    GpuSharedRanks(GpuBench bench, GpuData data, long seed)
            throws IOException, InterruptedException {
        this.bench = bench;
        this.data = data;
        data.refill(seed);
        int ranks = data.shards().ranks();
        try {
            for (int rank = 0; rank < ranks; rank++) {
                streams.add(opened.add(GpuStream.create()));
            }
            cublas = opened.add(new GpuCublas(bench, data, data.a().dtype()));
            world = opened.add(World.threads(ranks));
            operators = world.call(this::prepare);
        } catch (Throwable e) {
            opened.closeAfter(e);
            throw e;
        }
    }

    /** Every algorithm's operator, with the rank's rows in both places. */
    private List<CudaAllGatherMatmul> prepare(Fabric fabric) {
        List<CudaAllGatherMatmul> prepared = new ArrayList<>();
        for (Algorithm algorithm : ALGORITHMS) {
            CudaAllGatherMatmul operator =
                    CudaAllGatherMatmul.on(fabric, bench.gpu())
                            .a(data.shards(), data.a().dtype())
                            .b(data.b(), false)
                            .output(data.a().dtype())
                            .algorithm(algorithm)
                            .prepare();
            prepared.add(operator);
            operator.call(data.shard(fabric.rank()));
            operator.call(data.shard(fabric.rank()));
        }
        return prepared;
    }

    /** The way of gathering that Weft chose here. */
    String automatic() {
        return operators.getFirst().getFirst().plan().name();
    }

    /** The name of an algorithm's times. */
    static String timeName(Algorithm algorithm) {
        return switch (algorithm) {
            case AUTO -> "auto";
            case MESH_PULL -> "meshPull";
            default -> algorithm.label();
        };
    }

    /**
     * cuBLAS's product on the device; of the algorithms, and of PyTorch's fused operator, the time
     * until all ranks have theirs.
     */
    Map<String, Samples> take(int warmup, int rounds) throws IOException, InterruptedException {
        Map<String, Samples> times = takeTurns(warmup, rounds);
        if (bench.pytorch().isPresent()) {
            takeFused(bench.pytorch().get(), rounds, times);
        }
        return times;
    }

    /** After the others: its ranks are processes, which share the GPU by time slices. */
    private void takeFused(GpuPytorch pytorch, int rounds, Map<String, Samples> times)
            throws IOException, InterruptedException {
        DeviceMatrix b = data.b();
        if (pytorch.openFused(data.shards().ranks(), data.a().rows(), b.rows(), b.cols())) {
            Map<String, Interleaved.Turn> turn = Map.of(GpuPytorch.FUSED, pytorch::takeFusedNs);
            times.putAll(GpuCase.take(turn, FUSED_WARMUP, rounds));
        }
        pytorch.free();
    }

    private Map<String, Samples> takeTurns(int warmup, int rounds) {
        int ranks = data.shards().ranks();
        long[] cublasNs = new long[rounds];
        long[][][] startNs = new long[ALGORITHMS.size()][rounds][ranks];
        long[][][] endNs = new long[ALGORITHMS.size()][rounds][ranks];
        world.run(
                fabric -> {
                    bench.gpu().bind();
                    int rank = fabric.rank();
                    int things = ALGORITHMS.size() + 1;
                    for (int round = -warmup; round < rounds; round++) {
                        // Warm-up rounds land in the first sample, which is replaced later.
                        int sample = Math.max(0, round);
                        for (int position = 0; position < things; position++) {
                            int thing = Interleaved.thing(round, position, things);
                            fabric.barrier();
                            if (thing < ALGORITHMS.size()) {
                                startNs[thing][sample][rank] = System.nanoTime();
                                call(rank, thing);
                                endNs[thing][sample][rank] = System.nanoTime();
                            } else if (rank == 0) {
                                cublasNs[sample] = cublas.takeNs();
                            }
                        }
                    }
                });
        Map<String, Samples> times = new LinkedHashMap<>();
        times.put(CUBLAS, Samples.ofNs(cublasNs));
        for (int thing = 0; thing < ALGORITHMS.size(); thing++) {
            long[] wallNs = new long[rounds];
            for (int round = 0; round < rounds; round++) {
                wallNs[round] = wallNs(startNs[thing][round], endNs[thing][round]);
            }
            times.put(timeName(ALGORITHMS.get(thing)), Samples.ofNs(wallNs));
        }
        return times;
    }

    /** From the first rank's start to the last one's end. */
    static long wallNs(long[] startNs, long[] endNs) {
        long first = startNs[0];
        // Differences, since the clock's numbers may wrap.
        long before = LongStream.of(startNs).map(ns -> ns - first).min().orElseThrow();
        long after = LongStream.of(endNs).map(ns -> ns - first).max().orElseThrow();
        return after - before;
    }

    private void call(int rank, int thing) {
        CudaAllGatherMatmul operator = operators.get(rank).get(thing);
        operator.start(operator.nextShard(), streams.get(rank), View.PIPELINED).await();
    }

    /** Calls every operator once more with other rows, and looks at every rank's product. */
    List<BenchRow.Check> verify(long otherSeed) {
        data.refill(otherSeed);
        GpuJudge judge = new GpuJudge(bench, data);
        operators.forEach(own -> own.forEach(op -> bench.check().poison(op.product(0))));
        world.run(
                fabric -> {
                    for (CudaAllGatherMatmul operator : operators.get(fabric.rank())) {
                        operator.call(data.shard(fabric.rank()));
                    }
                });
        CudaAllGatherMatmul first = operators.getFirst().getFirst();
        judge.float64("rank 0, " + timeName(ALGORITHMS.getFirst()), first.product(0));
        for (int rank = 0; rank < operators.size(); rank++) {
            for (int thing = 0; thing < ALGORITHMS.size(); thing++) {
                CudaAllGatherMatmul operator = operators.get(rank).get(thing);
                String who = "rank " + rank + ", " + timeName(ALGORITHMS.get(thing));
                judge.product(who, operator.product(0));
                judge.gathered(who, operator);
                if (operator != first) {
                    judge.sameBits(
                            who + ": bits of rank 0's auto", operator.product(0), first.product(0));
                }
            }
        }
        return judge.checks();
    }

    @Override
    public void close() {
        try (opened) {
            world.run(fabric -> operators.get(fabric.rank()).forEach(CudaAllGatherMatmul::close));
        }
    }
}
