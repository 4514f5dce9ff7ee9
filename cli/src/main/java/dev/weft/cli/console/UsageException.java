package dev.weft.cli.console;

/** Input that cannot be used: one line that says what was wrong and what would be right. */
public final class UsageException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    public UsageException(String message) {
        super(message);
    }
}
