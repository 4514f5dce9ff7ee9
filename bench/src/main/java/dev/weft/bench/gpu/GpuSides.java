package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Interleaved;
import dev.weft.bench.measure.Resources;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceEvent;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaAllGatherMatmulBuilder;
import dev.weft.plan.Algorithm;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;

/**
 * All that takes turns in one row of gather and product: rank 0 on the GPU, its peers' rows in host
 * memory. Everything is allocated before the first turn. Used by one thread.
 */
final class GpuSides implements AutoCloseable {

    static final String CUBLAS = "cublas";
    static final String GATED = "gated";
    static final String GATHER = "gather";
    static final String SEQUENTIAL = "sequential";
    static final String PIPELINED = "pipelined";
    static final String GRAPH = "pipelinedGraph";

    /** Places that a shard may lie in. */
    private static final int SLOTS = 2;

    private final GpuBench bench;
    private final GpuOperands data;
    private final DType out;
    private final Resources opened = new Resources();
    private final GpuCublas cublas;
    private final CudaAllGatherMatmul sequential;
    private final CudaAllGatherMatmul pipelined;

    /** Pipelined operators besides, by name. */
    private final Map<String, Other> others = new LinkedHashMap<>();

    private record Other(GpuOperands of, CudaAllGatherMatmul operator) {}

    private final Map<String, Interleaved.Turn> ofPytorch = new LinkedHashMap<>();

    /** Null unless launches of graphs take turns too. */
    private Captured captured;

    /**
     * A pipelined call in a graph.
     *
     * @param shard where launches find the rows of rank 0
     */
    private record Captured(
            CudaAllGatherMatmul operator, DeviceMatrix shard, Interleaved.Turn launch) {}

    GpuSides(GpuOperands data, DType out, long seed) throws IOException, InterruptedException {
        this.bench = data.bench;
        this.data = data;
        this.out = out;
        data.refill(seed);
        try {
            cublas = opened.add(data.cublas(out));
            long shardRows = data.shards.maxRows();
            sequential = open(data, op -> op.algorithm(Algorithm.SEQUENTIAL).chunkRows(shardRows));
            requireNoCut();
            pipelined = open(data, op -> op.algorithm(Algorithm.MESH_PULL));
        } catch (Throwable e) {
            opened.closeAfter(e);
            throw e;
        }
    }

    /** One more pipelined operator, of these inputs or of others. */
    void add(String name, GpuOperands of, UnaryOperator<CudaAllGatherMatmulBuilder> more) {
        UnaryOperator<CudaAllGatherMatmulBuilder> pulled =
                op -> more.apply(op.algorithm(Algorithm.MESH_PULL));
        others.put(name, new Other(of, open(of, pulled)));
    }

    /** PyTorch takes turns too, where it is installed. */
    void addPytorch() throws IOException, InterruptedException {
        if (bench.pytorch().isPresent()) {
            GpuPytorch pytorch = bench.pytorch().get();
            if (pytorch.open(data.a().dtype(), data.shards, data.k, data.n)) {
                ofPytorch.putAll(pytorch.turns());
                if (captured != null) {
                    ofPytorch.putAll(pytorch.turnsInGraphs());
                }
            }
        }
    }

    /** Launches of graphs with a pipelined call take turns, too; before {@link #addPytorch}. */
    void addGraph() {
        CudaAllGatherMatmul operator = open(data, op -> op.algorithm(Algorithm.MESH_PULL));
        DeviceMatrix shard = operator.nextShard();
        GpuStream stream = bench.stream();
        GpuStream.Graph graph =
                opened.add(stream.capture(() -> operator.start(shard, stream, View.PIPELINED)));
        DeviceEvent begin = opened.add(DeviceEvent.timed());
        DeviceEvent end = opened.add(DeviceEvent.timed());
        Interleaved.Turn launch =
                () -> {
                    begin.record(stream);
                    graph.launch(stream);
                    end.record(stream);
                    stream.synchronize();
                    operator.checkReplays();
                    return end.nsSince(begin);
                };
        captured = new Captured(operator, shard, launch);
    }

    /** From now on every call finds the rows of all ranks in place. */
    private CudaAllGatherMatmul open(
            GpuOperands of, UnaryOperator<CudaAllGatherMatmulBuilder> more) {
        CudaAllGatherMatmul operator = opened.add(more.apply(of.operator().output(out)).prepare());
        of.placePeers(operator);
        for (int slot = 0; slot < SLOTS; slot++) {
            operator.call(of.shard(0));
        }
        return operator;
    }

    /** The limit is a gather without any cut; few rows come in fewer copies. */
    private void requireNoCut() {
        long peers =
                IntStream.range(1, data.shards.ranks())
                        .filter(rank -> data.shards.rows(rank) > 0)
                        .count();
        if (sequential.copiesPerCall() > peers) {
            throw new IllegalStateException(
                    "the gather alone makes %d copies: expected at most %d, one per peer"
                            .formatted(sequential.copiesPerCall(), peers));
        }
    }

    /** What Weft and cublasLt have chosen here, for the record. */
    Map<String, Double> counts() {
        return Map.of(
                "pipelinedCopies", (double) pipelined.copiesPerCall(),
                "computeBlocks", (double) pipelined.computeWorkers(),
                "cublasCandidate", (double) cublas.best());
    }

    Map<String, Samples> take(int warmup, int rounds) throws IOException, InterruptedException {
        Map<String, Interleaved.Turn> turns = new LinkedHashMap<>();
        turns.put(CUBLAS, cublas::takeNs);
        turns.put(GATED, () -> takeNs(pipelined, View.COMPUTE_ONLY));
        turns.put(GATHER, () -> takeNs(sequential, View.COMM_ONLY));
        // The GPU rests while processes change, and the next product is faster: not cuBLAS's alone.
        ofPytorch.forEach((what, turn) -> turns.put(what, () -> thenOurs(turn)));
        turns.put(SEQUENTIAL, () -> takeNs(sequential, View.PIPELINED));
        turns.put(PIPELINED, () -> takeNs(pipelined, View.PIPELINED));
        others.forEach(
                (what, other) -> turns.put(what, () -> takeNs(other.operator, View.PIPELINED)));
        if (captured != null) {
            turns.put(GRAPH, captured.launch);
        }
        return GpuRow.take(turns, warmup, rounds);
    }

    /**
     * A turn of another process, and a call of ours that nobody times. Multiprocessors change
     * between processes later than copy engines: the next call's copies would begin before it does.
     */
    private long thenOurs(Interleaved.Turn turn) throws IOException, InterruptedException {
        long ns = turn.takeNs();
        takeNs(pipelined, View.COMPUTE_ONLY);
        return ns;
    }

    /** One call on an idle stream; its time on the device. */
    private long takeNs(CudaAllGatherMatmul operator, View view) {
        return operator.start(operator.nextShard(), bench.stream(), view).await().elapsedNs();
    }

    /**
     * Calls everything of these inputs once more with other rows on poisoned outputs, and looks at
     * all of it.
     */
    List<BenchRow.Check> verify(long otherSeed) throws IOException, InterruptedException {
        data.refill(otherSeed);
        GpuJudge judge = new GpuJudge(data);
        callPoisoned(pipelined);
        if (judge.product(PIPELINED, pipelined.product(0))) {
            judge.float64(PIPELINED, pipelined.product(0));
        }
        judge.gathered(PIPELINED, pipelined);
        callPoisoned(sequential);
        judge.gathered(SEQUENTIAL, sequential);
        judge.sameBits(
                "pipelined and sequential: bits", pipelined.product(0), sequential.product(0));
        bench.check().poison(pipelined.product(0));
        takeNs(pipelined, View.COMPUTE_ONLY);
        judge.sameBits("gated and sequential: bits", pipelined.product(0), sequential.product(0));
        others.forEach(
                (name, other) -> {
                    if (other.of == data) {
                        callPoisoned(other.operator);
                        judge.product(name, other.operator.product(0));
                        judge.gathered(name, other.operator);
                    }
                });
        if (captured != null) {
            DeviceMatrix product = captured.operator.product(0);
            data.placePeers(captured.operator);
            captured.shard.copyFrom(data.shard(0), bench.stream());
            bench.check().poison(product);
            captured.launch.takeNs();
            judge.sameBits("launched and sequential: bits", product, sequential.product(0));
        }
        bench.check().poison(cublas.product());
        cublas.takeNs();
        judge.product(CUBLAS, cublas.product());
        return judge.checks();
    }

    private void callPoisoned(CudaAllGatherMatmul operator) {
        data.placePeers(operator);
        bench.check().poison(operator.product(0));
        operator.call(data.shard(0));
    }

    @Override
    public void close() {
        opened.close();
    }
}
