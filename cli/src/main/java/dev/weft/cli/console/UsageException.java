package dev.weft.cli.console;

/** Input that cannot be used: one line that says what was wrong and what would be right. */
public final class UsageException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    /**
     * @param values of the message's places, of which there are none where this is empty
     */
    public UsageException(String message, Object... values) {
        super(values.length == 0 ? message : message.formatted(values));
    }
}
