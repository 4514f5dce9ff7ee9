package dev.weft.cuda.exec;

import dev.weft.fabric.transport.Awaited;

/**
 * A step of some rank, as others wait for it: a word tells their hosts that it is queued, and an
 * event tells their GPUs that it is done.
 *
 * @param at the rank that has the word
 * @param word its number there
 * @param by the rank that takes the step
 * @param lane of that rank, or {@link #PRODUCT}
 * @param parity which of the lane's two events is recorded behind it
 */
record Raised(int at, int word, int by, int lane, int parity, Awaited awaited) {

    static final int PRODUCT = -1;

    Raised {
        // It queues this call's work and, once all ranks have announced that, the next one's.
        awaited = awaited.within(1);
    }

    boolean hasEventOf(Raised other) {
        return by == other.by && lane == other.lane && parity == other.parity;
    }
}
