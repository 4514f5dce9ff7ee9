package dev.weft.model;

/** A word that one thread writes. */
final class OwnedWord extends Word {

    private final History history;

    OwnedWord(Kind kind, String name, int initial, int mostAhead) {
        super(kind, name, mostAhead);
        this.history = new History(name, initial);
    }

    /** From {@code at} steps of the thread on, the word holds {@code value}. */
    void raise(int thread, int at, int value) {
        if (value - history.last() < 0) {
            throw new IllegalStateException(
                    this + " falls from " + history.last() + " to " + value);
        }
        history.write(thread, at, value);
    }

    @Override
    int value(int[] at) {
        return history.value(at);
    }
}
