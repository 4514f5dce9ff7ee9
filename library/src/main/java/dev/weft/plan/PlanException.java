package dev.weft.plan;

import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Transfer;

/** Plans that would not gather or sum correctly: the message names rank, source and chunk. */
public final class PlanException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    /** A fault of one rank's plan as a whole. */
    PlanException(int rank, String fault) {
        super("rank " + rank + ": " + fault);
    }

    /** A fault at one chunk. */
    PlanException(int rank, int source, int chunk, String fault) {
        super("rank " + rank + ", source " + source + ", chunk " + chunk + ": " + fault);
    }

    /** A fault of a transfer, as {@code rank} has it in its plan. */
    PlanException(int rank, Transfer transfer, String fault) {
        this(rank, transfer.source(), transfer.chunk(), fault);
    }

    /** A fault of a block in the consumption order of {@code rank}. */
    PlanException(int rank, RowBlock block, String fault) {
        this(rank, block.source(), block.firstChunk(), fault);
    }
}
