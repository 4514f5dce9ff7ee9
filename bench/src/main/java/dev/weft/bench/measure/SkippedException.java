package dev.weft.bench.measure;

/** Something cannot be measured here: one line that says why. */
public final class SkippedException extends Exception {

    private static final long serialVersionUID = 1L;

    public SkippedException(String why) {
        super(why);
    }
}
