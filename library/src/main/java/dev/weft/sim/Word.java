package dev.weft.sim;

import java.util.ArrayList;
import java.util.List;

/** A word of a simulated rank, which steps raise, and those who wait for it. */
final class Word {

    private record Waiting(long value, Runnable action) {}

    private long value;

    /** Null if nobody waits. */
    private List<Waiting> waiting;

    /** When it was raised last. */
    double raisedNs;

    /** The earliest time at which it could have been raised, with nothing in its way. */
    double pathNs;

    /** Of the copy that raised it: the end of its rows in their shard, and its columns. */
    long endRow;

    long cols;

    boolean has(long wanted) {
        return value >= wanted;
    }

    /** Calls {@code action} once the word has this value. */
    void await(long wanted, Runnable action) {
        if (waiting == null) {
            waiting = new ArrayList<>(1);
        }
        waiting.add(new Waiting(wanted, action));
    }

    void raise(long newValue, double ns, double earliestNs) {
        value = newValue;
        raisedNs = ns;
        pathNs = Math.max(pathNs, earliestNs);
        if (waiting != null) {
            List<Waiting> all = waiting;
            waiting = null;
            for (Waiting each : all) {
                if (has(each.value)) {
                    each.action.run();
                } else {
                    await(each.value, each.action);
                }
            }
        }
    }
}
