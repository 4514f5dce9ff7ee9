package dev.weft.op;

import dev.weft.fabric.transport.RowGather;
import dev.weft.tensor.ScaledMatrix.Scaling;

/**
 * How a prepared operator behaves beyond its plan.
 *
 * @param keepGathered whether gathered A is left for the caller
 * @param summaries whether row blocks wait for their lane's counter before they look at flags
 * @param sharedResults whether peers may read products and gathered A
 * @param columnParts how many pieces a row block is cut into by columns for the workers
 * @param pinning where compute workers run
 * @param rowGather the fabric's all-gather if it replaces the lanes, else null
 * @param scaling the scaling of an A of 8 bits, which is widened before it is multiplied; else null
 * @param epilogue the steps that are applied to the sums; null if they are only rounded
 */
record Settings(
        boolean keepGathered,
        boolean summaries,
        boolean sharedResults,
        int computeWorkers,
        int columnParts,
        Pinning pinning,
        RowGather rowGather,
        Scaling scaling,
        PreparedEpilogue epilogue) {}
