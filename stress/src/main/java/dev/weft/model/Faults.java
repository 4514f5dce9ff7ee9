package dev.weft.model;

/** Which signals between ranks and waits go astray while scripts are written; by default none. */
final class Faults {

    private static final int NONE = -1;

    private final int lost;
    private final boolean twice;
    private final int forgotten;
    private int signals;
    private int waits;
    private Wait lostSignal;

    private Faults(int lost, boolean twice, int forgotten) {
        this.lost = lost;
        this.twice = twice;
        this.forgotten = forgotten;
    }

    static Faults none() {
        return new Faults(NONE, false, NONE);
    }

    /** Every signal comes twice. */
    static Faults twice() {
        return new Faults(NONE, true, NONE);
    }

    /** Signal {@code number}, counted over all scripts, never comes. */
    static Faults withoutSignal(int number) {
        return new Faults(number, false, NONE);
    }

    /** No step waits for what wait {@code number} of the plans says. */
    static Faults withoutWait(int number) {
        return new Faults(NONE, false, number);
    }

    /** Asked once for each signal. */
    boolean isLost(Word word, int value) {
        if (word.role() == Word.Role.LOCAL || signals++ != lost) {
            return false;
        }
        lostSignal = new Wait(word, value, 0);
        return true;
    }

    boolean areDoubled() {
        return twice;
    }

    /** Asked for each wait of the plans in every call, by its number. */
    boolean isForgotten(int wait) {
        waits = Math.max(waits, wait + 1);
        return wait == forgotten;
    }

    /** Signals so far. */
    int signals() {
        return signals;
    }

    /** Waits of the plans. */
    int waits() {
        return waits;
    }

    /** The one that was lost, as what would have been reached; null if none was. */
    Wait lostSignal() {
        return lostSignal;
    }
}
