package dev.weft.cuda.op;

import dev.weft.cuda.exec.DeviceOperands;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.op.exec.Description;
import dev.weft.plan.Shards;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.List;

/**
 * Finds the gated kernels of an operator that gathers. Used by the thread that prepares it.
 *
 * @param productType of the products, before an epilogue
 * @param onePlace whether the rows of all shards come to one place, as kernels for few rows want
 * @param share as {@link CudaGroup#sharers} says
 */
record GatherKernels(
        CudaGroup group, Description wanted, DType productType, boolean onePlace, int share) {

    /**
     * By B: the one for all rows, and behind it those for calls of fewer rows that are multiplied
     * together, the most rows first.
     */
    List<List<GatedKernel>> load() {
        List<List<GatedKernel>> all = new ArrayList<>();
        long allRows = wanted.shards().totalRows();
        for (int b = 0; b < group.bs.size(); b++) {
            List<GatedKernel> ofB = new ArrayList<>();
            ofB.add(kernel(b));
            int rows =
                    hasFewRows() && allRows <= ofB.getFirst().rowsTogether()
                            ? GatedKernel.fewerRows(allRows)
                            : 0;
            for (; rows > 0; rows = GatedKernel.fewerRows(rows)) {
                ofB.add(kernelForRows(b, Shards.of(rows)));
            }
            all.add(ofB);
        }
        return all;
    }

    private boolean hasFewRows() {
        return onePlace && wanted.scaling() == null && GatedKernel.hasFewRows(group.gpu);
    }

    private GatedKernel kernel(int index) {
        DeviceOperands.B b = group.bs.get(index);
        Shards shards = wanted.shards();
        int blocks = wanted.computeWorkers();
        if (wanted.scaling() != null) {
            return GatedKernel.ofScaled(group.gpu, b.dtype(), productType, shards, blocks, share);
        }
        return hasFewRows() || b.blocks() != null
                ? kernelForRows(index, shards)
                : GatedKernel.load(
                        group.gpu,
                        wanted.aType(),
                        productType,
                        b.transposed(),
                        shards,
                        blocks,
                        share);
    }

    private GatedKernel kernelForRows(int index, Shards shards) {
        BlockType blocks = group.bs.get(index).blocks();
        if (blocks != null) {
            return GatedKernel.ofBlocks(
                    group.gpu,
                    blocks,
                    wanted.aType(),
                    productType,
                    onePlace ? shards.totalRows() : shards.maxRows(),
                    wanted.computeWorkers(),
                    share);
        }
        return GatedKernel.forRows(
                group.gpu,
                wanted.aType(),
                productType,
                group.bs.get(index).transposed(),
                shards,
                wanted.k(),
                wanted.columns().get(index),
                wanted.computeWorkers(),
                share);
    }
}
