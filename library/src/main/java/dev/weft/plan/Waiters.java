package dev.weft.plan;

import java.util.ArrayDeque;
import java.util.Arrays;

/**
 * Workers of a dry run, of which each can go on or waits for one event. One that waits is looked at
 * again only when its event has happened, so that a run takes time in proportion to its items.
 */
final class Waiters {

    private static final int NOBODY = -1;

    /** Per event: the first worker that waits for it. */
    private final int[] first;

    /** Per waiting worker: the next one that waits for the same event. */
    private final int[] next;

    private final ArrayDeque<Integer> runnable = new ArrayDeque<>();

    /** At first every worker can go on. */
    Waiters(int events, int workers) {
        this.first = new int[events];
        Arrays.fill(first, NOBODY);
        this.next = new int[workers];
        for (int worker = 0; worker < workers; worker++) {
            runnable.add(worker);
        }
    }

    /** A worker that can go on; -1 where all have ended or wait. */
    int take() {
        return runnable.isEmpty() ? NOBODY : runnable.remove();
    }

    void await(int event, int worker) {
        next[worker] = first[event];
        first[event] = worker;
    }

    void wake(int event) {
        int worker = first[event];
        first[event] = NOBODY;
        for (; worker != NOBODY; worker = next[worker]) {
            runnable.add(worker);
        }
    }
}
