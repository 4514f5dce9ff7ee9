package dev.weft.model;

/**
 * A thread goes on only once the word has reached the value.
 *
 * @param mostAhead how far past the value executors take it for a signal
 */
record Wait(Word word, int value, int mostAhead) {

    boolean isOver(int[] at) {
        return word.reached(at, value);
    }

    @Override
    public String toString() {
        return word + " to reach " + value;
    }
}
