package dev.weft.op;

import dev.weft.fabric.transport.RowGather;
import java.util.List;

/**
 * How a prepared operator behaves beyond its plan.
 *
 * @param keepGathered whether gathered A is left for the caller
 * @param summaries whether row blocks wait for their lane's counter before they look at flags
 * @param pinning where compute workers run
 * @param rowGather the fabric's all-gather, where it takes the place of the lanes; else null
 * @param candidates what auto looked at; none where the caller chose
 */
record Settings(
        boolean keepGathered,
        boolean summaries,
        int computeWorkers,
        Pinning pinning,
        RowGather rowGather,
        List<Candidate> candidates) {}
