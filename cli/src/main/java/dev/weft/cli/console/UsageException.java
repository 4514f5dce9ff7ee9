package dev.weft.cli.console;

/** Input that cannot be used: one line that says what was wrong and what is expected. */
public final class UsageException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    /**
     * @param values the values for the message's placeholders; if empty, it has none
     */
    public UsageException(String message, Object... values) {
        super(values.length == 0 ? message : message.formatted(values));
    }

    /** Throws one if the input is wrong. */
    public static void refuseIf(boolean wrong, String message, Object... values) {
        if (wrong) {
            throw new UsageException(message, values);
        }
    }
}
