package dev.weft.sim;

/** What a step waits for: words, each with the value that it must have. */
record Waits(Word[] words, long[] values) {

    static final Waits NONE = new Waits(new Word[0], new long[0]);

    /** The first from {@code start} on that has not come; their number if all have. */
    int missing(int start) {
        int at = start;
        while (at < words.length && words[at].has(values[at])) {
            at++;
        }
        return at;
    }

    boolean haveCome() {
        return missing(0) == words.length;
    }

    /** Calls {@code action} once the one at {@code index} has come. */
    void await(int index, Runnable action) {
        words[index].await(values[index], action);
    }

    /** Calls {@code action} once all have come, which may be now. */
    void whenAllHaveCome(Runnable action) {
        int missing = missing(0);
        if (missing == words.length) {
            action.run();
        } else {
            await(missing, () -> whenAllHaveCome(action));
        }
    }

    /** When the last of them came; 0 if there are none. */
    double cameNs() {
        double last = 0;
        for (Word word : words) {
            last = Math.max(last, word.raisedNs);
        }
        return last;
    }

    /** The earliest time at which all could have come, {@code startNs} if there are none. */
    double pathNs(double startNs) {
        double path = startNs;
        for (Word word : words) {
            path = Math.max(path, word.pathNs);
        }
        return path;
    }
}
