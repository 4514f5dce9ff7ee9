package dev.weft.plan;

import java.util.ArrayDeque;
import java.util.Arrays;

/**
 * Workers of a dry run: each can continue or waits for one event. A waiting worker is looked at
 * again only when its event has happened, so that a run takes time in proportion to its items.
 */
final class Waiters {

    private static final int NOBODY = -1;

    /** Per event: the first worker that waits for it. */
    private final int[] first;

    /** Per waiting worker: the next one that waits for the same event. */
    private final int[] next;

    private final ArrayDeque<Integer> runnable = new ArrayDeque<>();

    /** Initially every worker can continue. */
    Waiters(int events, int workers) {
        this.first = new int[events];
        Arrays.fill(first, NOBODY);
        this.next = new int[workers];
        for (int worker = 0; worker < workers; worker++) {
            runnable.add(worker);
        }
    }

    /** A worker that can continue; -1 if all have ended or wait. */
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
