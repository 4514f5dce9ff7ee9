package dev.weft.model;

/** A thread goes on only once the word has reached the value. */
record Wait(Word word, int value) {

    boolean isOver(int[] at) {
        return word.reached(at, value);
    }

    @Override
    public String toString() {
        return word + " to reach " + value;
    }
}
