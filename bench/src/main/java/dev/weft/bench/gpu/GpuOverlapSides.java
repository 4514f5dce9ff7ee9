package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Interleaved;
import dev.weft.bench.measure.Resources;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaAllGatherMatmulBuilder;
import dev.weft.op.Operator.View;
import dev.weft.plan.Algorithm;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;

/**
 * All that takes turns in one row of the overlap table: rank 0 on the GPU, its peers' rows in host
 * memory. Everything is allocated before the first turn. Used by one thread.
 */
final class GpuOverlapSides implements AutoCloseable {

    static final String CUBLAS = "cublas";
    static final String GATED = "gated";
    static final String GATHER = "gather";
    static final String SEQUENTIAL = "sequential";
    static final String PIPELINED = "pipelined";
    static final String PIPELINED_CUBLAS = "pipelinedCublas";

    /** Places that a shard may lie in. */
    private static final int SLOTS = 2;

    private final GpuBench bench;
    private final GpuData data;
    private final Resources opened = new Resources();
    private final GpuCublas cublas;
    private final CudaAllGatherMatmul sequential;
    private final CudaAllGatherMatmul pipelined;
    private final CudaAllGatherMatmul pipelinedCublas;
    private Map<String, Interleaved.Turn> ofPytorch = Map.of();

    GpuOverlapSides(GpuBench bench, GpuData data, DType out, long seed)
            throws IOException, InterruptedException {
        this.bench = bench;
        this.data = data;
        data.refill(seed);
        try {
            cublas = opened.add(new GpuCublas(bench, data, out));
            long shardRows = data.shards().maxRows();
            sequential = open(out, op -> op.algorithm(Algorithm.SEQUENTIAL).chunkRows(shardRows));
            requireNoCut();
            pipelined = open(out, op -> op.algorithm(Algorithm.MESH_PULL));
            pipelinedCublas = open(out, op -> op.algorithm(Algorithm.MESH_PULL).engine("cublas"));
        } catch (Throwable e) {
            opened.closeAfter(e);
            throw e;
        }
    }

    /** PyTorch takes turns too, where it is installed. */
    void addPytorch() throws IOException, InterruptedException {
        if (bench.pytorch().isPresent()) {
            GpuPytorch pytorch = bench.pytorch().get();
            DeviceMatrix b = data.b();
            if (pytorch.open(b.dtype(), data.shards(), b.rows(), b.cols())) {
                ofPytorch = pytorch.turns();
            }
        }
    }

    /** From now on every call finds the rows of all ranks in place. */
    private CudaAllGatherMatmul open(DType out, UnaryOperator<CudaAllGatherMatmulBuilder> more) {
        CudaAllGatherMatmul operator =
                opened.add(more.apply(data.operator().output(out)).prepare());
        data.placePeers(operator);
        for (int slot = 0; slot < SLOTS; slot++) {
            operator.call(data.shard(0));
        }
        return operator;
    }

    /** The limit is a gather without any cut; few rows come in fewer copies. */
    private void requireNoCut() {
        long peers =
                IntStream.range(1, data.shards().ranks())
                        .filter(rank -> data.shards().rows(rank) > 0)
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
        turns.put(PIPELINED_CUBLAS, () -> takeNs(pipelinedCublas, View.PIPELINED));
        return GpuCase.take(turns, warmup, rounds);
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

    /** Calls everything once more with other rows on poisoned outputs, and looks at all of it. */
    List<BenchRow.Check> verify(long otherSeed) {
        data.refill(otherSeed);
        GpuJudge judge = new GpuJudge(bench, data);
        callPoisoned(pipelined);
        judge.product(PIPELINED, pipelined.product(0));
        judge.float64(PIPELINED, pipelined.product(0));
        judge.gathered(PIPELINED, pipelined);
        callPoisoned(sequential);
        judge.gathered(SEQUENTIAL, sequential);
        judge.sameBits(
                "pipelined and sequential: bits", pipelined.product(0), sequential.product(0));
        bench.check().poison(pipelined.product(0));
        takeNs(pipelined, View.COMPUTE_ONLY);
        judge.sameBits("gated and sequential: bits", pipelined.product(0), sequential.product(0));
        callPoisoned(pipelinedCublas);
        judge.product(PIPELINED_CUBLAS, pipelinedCublas.product(0));
        judge.gathered(PIPELINED_CUBLAS, pipelinedCublas);
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
