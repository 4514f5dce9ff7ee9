package dev.weft.cli.console;

import java.util.List;

/** A valid run did not succeed: one line that says why. */
public final class RunFailedException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    private final transient List<String> details;

    /**
     * @param values the values for the message's placeholders; if empty, it has none
     */
    public RunFailedException(String message, Object... values) {
        this(values.length == 0 ? message : message.formatted(values), List.of());
    }

    /**
     * @param details lines that are printed below the message
     */
    public RunFailedException(String message, List<String> details) {
        super(message);
        this.details = List.copyOf(details);
    }

    /** Sleeps; fails if the thread is interrupted meanwhile. */
    public static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new RunFailedException("interrupted");
        }
    }

    public List<String> details() {
        return details;
    }
}
