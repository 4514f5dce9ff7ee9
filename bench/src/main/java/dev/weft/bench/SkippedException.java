package dev.weft.bench;

/** Something cannot be measured here: one line that says why. */
final class SkippedException extends Exception {

    private static final long serialVersionUID = 1L;

    SkippedException(String why) {
        super(why);
    }
}
