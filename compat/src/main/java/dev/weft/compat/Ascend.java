package dev.weft.compat;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaAllGatherMatmulBuilder;
import dev.weft.fabric.Fabric;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.AllGatherMatmulBuilder;
import dev.weft.op.OperatorBuilder;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.AscendChunkRule;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;

/**
 * The Ascend example's operator: A in row slices, B replicated, C in fp32 on every rank. Each owner
 * pushes its chunks to every peer and raises the chunk's flag and a summary counter there. Compute
 * takes own rows first, then waits for the summary and after that for the flags. Collective.
 */
public final class Ascend {

    private Ascend() {}

    /**
     * Prepares the example's operator.
     *
     * @param computeBlocks threads per rank that multiply
     * @param commBlocks threads per rank that move chunks: if there is at least one per peer, they
     *     share each destination's chunks; with fewer, they take single chunks in turn
     */
    public static AllGatherMatmul allGatherGemm(
            Fabric fabric,
            Shards shards,
            DType aType,
            Matrix b,
            long baseM,
            long baseN,
            int computeBlocks,
            int commBlocks) {
        AllGatherMatmulBuilder builder = AllGatherMatmul.on(fabric).b(b);
        return describe(builder, shards, aType, b.rows(), baseM, baseN, computeBlocks, commBlocks)
                .prepare();
    }

    /**
     * Prepares the example's operator on a GPU, which ranks may share.
     *
     * @param b in device memory, which must stay allocated
     * @param computeBlocks thread blocks of a rank's grid
     * @param commBlocks copy streams of a rank, which share the work as threads on a CPU do
     */
    public static CudaAllGatherMatmul allGatherGemm(
            Fabric fabric,
            Gpu gpu,
            Shards shards,
            DType aType,
            DeviceMatrix b,
            long baseM,
            long baseN,
            int computeBlocks,
            int commBlocks) {
        CudaAllGatherMatmulBuilder builder = CudaAllGatherMatmul.on(fabric, gpu).b(b);
        return describe(builder, shards, aType, b.rows(), baseM, baseN, computeBlocks, commBlocks)
                .prepare();
    }

    private static <B extends OperatorBuilder<?, B>> B describe(
            B builder,
            Shards shards,
            DType aType,
            long k,
            long baseM,
            long baseN,
            int computeBlocks,
            int commBlocks) {
        AscendChunkRule rule = AscendChunkRule.of(shards.maxRows(), k, baseM, baseN);
        builder.a(shards, aType)
                .output(DType.FP32)
                .computeWorkers(computeBlocks)
                .commWorkers(commBlocks)
                .algorithm(Algorithm.MESH_PUSH)
                .chunkRows(rule.rows())
                .waitForSummary();
        return rule.cols() < k ? builder.chunkCols(rule.cols()) : builder;
    }

    /**
     * Shards of A as the example cuts them.
     *
     * @param blockRows the most rows that are multiplied at a time
     */
    public static Chunks chunks(Shards shards, long k, long baseM, long baseN, long blockRows) {
        AscendChunkRule rule = AscendChunkRule.of(shards.maxRows(), k, baseM, baseN);
        return Chunks.byRows(shards, k, rule.rows(), blockRows).withChunkCols(rule.cols());
    }
}
