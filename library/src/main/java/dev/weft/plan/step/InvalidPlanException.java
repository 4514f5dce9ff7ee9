package dev.weft.plan.step;

/** Steps that would not compute what is asked for: the message names the rank and the step. */
public final class InvalidPlanException extends IllegalArgumentException {

    private static final long serialVersionUID = 1L;

    InvalidPlanException(int rank, String fault) {
        super("rank " + rank + ": " + fault);
    }
}
