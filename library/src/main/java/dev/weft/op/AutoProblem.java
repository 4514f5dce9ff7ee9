package dev.weft.op;

import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.PlanWriter;
import dev.weft.tensor.DType;
import java.util.List;

/** What an operator is to do, as far as the choice of its plan depends on it. */
interface AutoProblem {

    Hosts hosts();

    DType aType();

    DType outType();

    /** N of each product. */
    List<Long> columns();

    boolean keepGathered();

    /** Compute workers per rank. */
    int workers();

    /** Communication workers that an algorithm gets. */
    int lanes(PlanWriter algorithm);

    /** Whether the caller has said how shards are cut. */
    boolean cutGiven();

    /** The shards, cut into that many chunks each or, for 0, as the caller has said. */
    Chunks chunks(PlanWriter algorithm, int chunksPerSource);

    /** Of allgather(A). */
    double gatheredBytes();

    /** All of the above and whatever else a measured time depends on. */
    String key();
}
