package dev.weft.model;

/** A word that somebody awaits. Its value follows from how far its writers have come. */
abstract sealed class Word permits OwnedWord, ReleaseWord {

    /** What a word tells. */
    enum Kind {
        START,
        FLAG,
        COUNTER,
        RELEASE,
        /** Within a rank: the team has been started, or a worker has ended its call. */
        LOCAL
    }

    private final Kind kind;
    private final String name;
    private final int mostAhead;

    Word(Kind kind, String name, int mostAhead) {
        this.kind = kind;
        this.name = name;
        this.mostAhead = mostAhead;
    }

    Kind kind() {
        return kind;
    }

    /** How far past what somebody awaits the operators take it for a signal. */
    int mostAhead() {
        return mostAhead;
    }

    /**
     * @param at by thread: how many of its steps are done
     */
    abstract int value(int[] at);

    /** Allows for numbers that wrap round, as the fabric does. */
    final boolean reached(int[] at, int value) {
        return value(at) - value >= 0;
    }

    @Override
    public String toString() {
        return name;
    }
}
