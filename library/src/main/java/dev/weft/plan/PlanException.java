package dev.weft.plan;

import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Transfer;

/**
 * Plans that would not gather or sum correctly: the message names rank, source and chunk. Or a
 * {@link PlanWriter} that has failed: the message names the algorithm, and the cause is what it
 * threw, if it threw anything.
 */
public final class PlanException extends IllegalArgumentException {

    private static final long serialVersionUID = 1L;

    private PlanException(String message, Throwable cause) {
        super(message, cause);
    }

    /** A class that may be the algorithm's cannot be loaded. */
    static PlanException notLoaded(String algorithm, Throwable thrown) {
        String why = thrown.getCause() == null ? "" : ": " + thrown.getCause();
        return new PlanException(
                "algorithm '%s': no class that can be loaded has it (%s%s)"
                        .formatted(algorithm, GuardedWriter.first(thrown), why),
                thrown);
    }

    /** A writer threw something when {@code call} was called. */
    PlanException(String algorithm, String call, Throwable thrown) {
        super(
                "algorithm '%s': %s threw %s%s%s"
                        .formatted(
                                algorithm,
                                call,
                                thrown.getClass().getSimpleName(),
                                GuardedWriter.first(thrown).replaceFirst("^(?=.)", ": "),
                                GuardedWriter.place(thrown)),
                thrown);
    }

    /** A writer returned something that is no plan. */
    PlanException(String algorithm, String fault, Object... values) {
        super("algorithm '%s': %s".formatted(algorithm, fault.formatted(values)));
    }

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
