package dev.weft.model;

/** Which signals between ranks go astray while scripts are written; by default none. */
final class SignalFaults {

    private static final int NONE = -1;

    private final int lost;
    private final boolean twice;
    private int count;
    private Wait lostSignal;

    private SignalFaults(int lost, boolean twice) {
        this.lost = lost;
        this.twice = twice;
    }

    static SignalFaults sound() {
        return new SignalFaults(NONE, false);
    }

    /** Every signal comes twice. */
    static SignalFaults twice() {
        return new SignalFaults(NONE, true);
    }

    /** Signal {@code number}, counted over all scripts, never comes. */
    static SignalFaults without(int number) {
        return new SignalFaults(number, false);
    }

    /** Asked once for each signal. */
    boolean isLost(OwnedWord word, int value) {
        if (word.kind() == Word.Kind.LOCAL || count++ != lost) {
            return false;
        }
        lostSignal = new Wait(word, value);
        return true;
    }

    boolean areDoubled() {
        return twice;
    }

    /** Signals so far. */
    int count() {
        return count;
    }

    /** The one that was lost, as what would have been reached; null if none was. */
    Wait lostSignal() {
        return lostSignal;
    }
}
