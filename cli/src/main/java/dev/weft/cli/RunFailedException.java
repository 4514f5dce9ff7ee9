package dev.weft.cli;

/** A run that was rightly asked for did not succeed: one line that says why. */
final class RunFailedException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    RunFailedException(String message) {
        super(message);
    }
}
