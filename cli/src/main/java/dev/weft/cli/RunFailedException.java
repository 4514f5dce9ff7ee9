package dev.weft.cli;

import java.util.List;

/** A run that was rightly asked for did not succeed: one line that says why. */
final class RunFailedException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    private final transient List<String> details;

    RunFailedException(String message) {
        this(message, List.of());
    }

    /**
     * @param details lines that are printed below the message
     */
    RunFailedException(String message, List<String> details) {
        super(message);
        this.details = List.copyOf(details);
    }

    List<String> details() {
        return details;
    }
}
