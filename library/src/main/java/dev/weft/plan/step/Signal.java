package dev.weft.plan.step;

/**
 * A word that a step raises to a value when it is done. Each word has one writer, which raises it
 * to ever larger values: a wait for a value is over once the word has it or a larger one.
 *
 * @param by the rank that raises it
 * @param rank where the word is: the rank that most waits for it
 * @param word number of the word among those of {@code rank}
 * @param value 1 or more
 */
public record Signal(int by, int rank, int word, long value) {

    /** The same word with another value. */
    public Signal withValue(long other) {
        return new Signal(by, rank, word, other);
    }
}
