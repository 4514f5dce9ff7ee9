package dev.weft.plan;

/**
 * Plans that would not gather or sum correctly, or a {@link PlanWriter} that has failed: the
 * message names the algorithm, and the cause is what it threw, if it threw anything.
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
}
