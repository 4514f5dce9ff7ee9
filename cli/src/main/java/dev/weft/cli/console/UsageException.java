package dev.weft.cli.console;

import java.util.function.Supplier;

/** Input that cannot be used: one line that says what was wrong and what is expected. */
public final class UsageException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    /**
     * @param values the values for the message's placeholders; if empty, it has none
     */
    public UsageException(String message, Object... values) {
        super(values.length == 0 ? message : message.formatted(values));
    }

    /**
     * What the supplier makes of the input.
     *
     * @param prefix precedes the reason why the input is refused
     */
    public static <T> T checked(String prefix, Supplier<T> supplier) {
        try {
            return supplier.get();
        } catch (IllegalArgumentException e) {
            throw new UsageException(prefix + e.getMessage());
        }
    }

    /** Throws one if the input is wrong. */
    public static void refuseIf(boolean wrong, String message, Object... values) {
        if (wrong) {
            throw new UsageException(message, values);
        }
    }
}
