package dev.weft.model;

/** A word that somebody awaits. One thread raises it. */
final class Word {

    /** What a word tells. */
    enum Role {
        /** Which call a rank has started. */
        START,
        /** What steps are done. */
        SIGNAL,
        /** Within a rank: the team has been started, or a worker has ended its call. */
        LOCAL
    }

    private final Role role;
    private final History history;

    Word(Role role, String name, int initial) {
        this.role = role;
        this.history = new History(name, initial);
    }

    Role role() {
        return role;
    }

    /** From {@code at} steps of the thread on, the word holds {@code value}. */
    void raise(int thread, int at, int value) {
        if (value - history.last() < 0) {
            throw new IllegalStateException(
                    this + " falls from " + history.last() + " to " + value);
        }
        history.write(thread, at, value);
    }

    /**
     * @param at by thread: how many of its steps are done
     */
    int value(int[] at) {
        return history.value(at);
    }

    /** Allows for numbers that wrap round, as the fabric does. */
    boolean reached(int[] at, int value) {
        return value(at) - value >= 0;
    }

    @Override
    public String toString() {
        return history.toString();
    }
}
