package dev.weft.cli.console;

import java.util.List;

/** A valid run did not succeed: one line that says why. */
public final class RunFailedException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    private final transient List<String> details;

    public RunFailedException(String message) {
        this(message, List.of());
    }

    /**
     * @param details lines that are printed below the message
     */
    public RunFailedException(String message, List<String> details) {
        super(message);
        this.details = List.copyOf(details);
    }

    public List<String> details() {
        return details;
    }
}
