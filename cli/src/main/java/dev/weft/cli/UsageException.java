package dev.weft.cli;

/** Input that cannot be used: one line that says what was wrong and what would be right. */
final class UsageException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    UsageException(String message) {
        super(message);
    }
}
