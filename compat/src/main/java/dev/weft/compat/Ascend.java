package dev.weft.compat;

import dev.weft.fabric.Fabric;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.Operator;
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

    /** Prepares the example's operator in host memory. */
    public static AllGatherMatmul allGatherGemm(
            Fabric fabric,
            Shards shards,
            DType aType,
            Matrix b,
            long baseM,
            long baseN,
            int computeBlocks,
            int commBlocks) {
        return (AllGatherMatmul)
                allGatherGemm(
                        Place.HOST,
                        fabric,
                        shards,
                        aType,
                        b,
                        baseM,
                        baseN,
                        computeBlocks,
                        commBlocks);
    }

    /**
     * Prepares the example's operator in host memory, or on a GPU, which ranks may share.
     *
     * @param b on a GPU it must stay allocated
     * @param computeBlocks threads per rank that multiply; on a GPU thread blocks of a rank's grid
     * @param commBlocks threads or copy streams per rank that move chunks: if there is at least one
     *     per peer, they share each destination's chunks; with fewer, they take single chunks in
     *     turn
     */
    public static <M> Operator<M> allGatherGemm(
            Place<M> place,
            Fabric fabric,
            Shards shards,
            DType aType,
            M b,
            long baseM,
            long baseN,
            int computeBlocks,
            int commBlocks) {
        long k = place.size(b).rows();
        AscendChunkRule rule = AscendChunkRule.of(shards.maxRows(), k, baseM, baseN);
        OperatorBuilder<M, ?> builder =
                place.operator(fabric)
                        .b(b)
                        .a(shards, aType)
                        .output(DType.FP32)
                        .computeWorkers(computeBlocks)
                        .commWorkers(commBlocks)
                        .algorithm(Algorithm.MESH_PUSH)
                        .chunkRows(rule.rows())
                        .waitForSummary();
        return (rule.cols() < k ? builder.chunkCols(rule.cols()) : builder).prepare();
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
