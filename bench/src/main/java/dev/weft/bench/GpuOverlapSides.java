package dev.weft.bench;

import dev.weft.cuda.CudaAllGatherMatmul;
import dev.weft.cuda.CudaAllGatherMatmulBuilder;
import dev.weft.cuda.CudaEngine;
import dev.weft.op.View;
import dev.weft.plan.Algorithm;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.DoubleSupplier;

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
    private final List<AutoCloseable> opened = new ArrayList<>();
    private final GpuCublas cublas;
    private final CudaAllGatherMatmul sequential;
    private final CudaAllGatherMatmul pipelined;
    private final CudaAllGatherMatmul pipelinedCublas;

    GpuOverlapSides(GpuBench bench, GpuData data, DType out, long seed) {
        this.bench = bench;
        this.data = data;
        data.refill(seed);
        try {
            cublas = new GpuCublas(bench, data, out);
            opened.add(cublas);
            long shardRows = data.shards().maxRows();
            sequential = open(describe(out).algorithm(Algorithm.SEQUENTIAL).chunkRows(shardRows));
            requireOneCopyPerPeer();
            pipelined = open(describe(out).algorithm(Algorithm.MESH_PULL));
            pipelinedCublas =
                    open(describe(out).algorithm(Algorithm.MESH_PULL).engine(CudaEngine.CUBLAS));
        } catch (RuntimeException | Error e) {
            GpuBench.closeAfter(e, opened);
            throw e;
        }
    }

    private CudaAllGatherMatmulBuilder describe(DType out) {
        return CudaAllGatherMatmul.withHostPeers(bench.gpu(), 0)
                .a(data.shards(), data.a().dtype())
                .b(data.b(), false)
                .output(out)
                .deadline(GpuBench.DEADLINE);
    }

    /** From now on every call finds the rows of all ranks in place. */
    private CudaAllGatherMatmul open(CudaAllGatherMatmulBuilder builder) {
        CudaAllGatherMatmul operator = builder.prepare();
        opened.add(operator);
        data.placePeers(operator);
        for (int slot = 0; slot < SLOTS; slot++) {
            operator.call(data.shard(0));
        }
        return operator;
    }

    /** The limit is a gather without any cut. */
    private void requireOneCopyPerPeer() {
        int peers = data.shards().ranks() - 1;
        if (sequential.copiesPerCall() != peers) {
            throw new IllegalStateException(
                    "the gather alone makes "
                            + sequential.copiesPerCall()
                            + " copies: expected "
                            + peers
                            + ", one per peer");
        }
    }

    /** What Weft and cublasLt have chosen here, for the record. */
    Map<String, Double> counts() {
        return Map.of(
                "pipelinedCopies", (double) pipelined.copiesPerCall(),
                "computeBlocks", (double) pipelined.computeBlocks(),
                "cublasCandidate", (double) cublas.best());
    }

    Map<String, Samples> take(int warmup, int rounds) {
        Map<String, DoubleSupplier> turns = new LinkedHashMap<>();
        turns.put(CUBLAS, cublas::takeUs);
        turns.put(GATED, () -> takeUs(pipelined, View.COMPUTE_ONLY));
        turns.put(GATHER, () -> takeUs(sequential, View.COMM_ONLY));
        turns.put(SEQUENTIAL, () -> takeUs(sequential, View.PIPELINED));
        turns.put(PIPELINED, () -> takeUs(pipelined, View.PIPELINED));
        turns.put(PIPELINED_CUBLAS, () -> takeUs(pipelinedCublas, View.PIPELINED));
        return GpuTurns.take(turns, warmup, rounds);
    }

    /** One call on an idle stream; its time on the device. */
    private double takeUs(CudaAllGatherMatmul operator, View view) {
        operator.start(operator.nextShard(), bench.stream(), view);
        operator.await();
        return operator.elapsedUs();
    }

    /** Calls everything once more with other rows on poisoned outputs, and looks at all of it. */
    List<GpuCheck> verify(long otherSeed) {
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
        takeUs(pipelined, View.COMPUTE_ONLY);
        judge.sameBits("gated and sequential: bits", pipelined.product(0), sequential.product(0));
        callPoisoned(pipelinedCublas);
        judge.product(PIPELINED_CUBLAS, pipelinedCublas.product(0));
        judge.gathered(PIPELINED_CUBLAS, pipelinedCublas);
        bench.check().poison(cublas.product());
        cublas.takeUs();
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
        Cleanup.closeAll(opened);
    }
}
