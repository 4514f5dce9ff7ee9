package dev.weft.op;

import dev.weft.fabric.transport.RowGather;
import dev.weft.tensor.ScaledMatrix.Scaling;

/**
 * How a prepared operator behaves beyond its plan.
 *
 * @param keepGathered whether gathered A is left for the caller
 * @param summaries whether row blocks wait for their lane's counter before they look at flags
 * @param sharedResults whether peers may read products and gathered A
 * @param columnParts pieces in which workers take a row block, each with some of the columns
 * @param pinning where compute workers run
 * @param rowGather the fabric's all-gather, where it takes the place of the lanes; else null
 * @param scaling of an A of 8 bits, which is widened before it is multiplied; else null
 * @param epilogue what is done to the sums of products; null where they are only rounded
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
