package dev.weft.exec.host;

import dev.weft.fabric.transport.Transport;
import dev.weft.plan.step.Signal;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * What follows from the end of a step: the signal that it raises, and the joins of its own rank
 * that waited for it. Raising a signal is a release; it pairs with the acquire of those that wait
 * for it, here and on other ranks.
 */
final class Done {

    /** A step that only waits for steps of its own rank: the last of them ends it. */
    static final class Join {

        private final AtomicInteger left = new AtomicInteger();
        private final int count;
        private final Done done;

        /** When it ended, by {@link System#nanoTime()}. */
        volatile long endNs;

        Join(int count, Done done) {
            this.count = count;
            this.done = done;
        }

        void reset() {
            left.set(count);
            endNs = 0;
        }

        /** Ends a join that waits for nothing. */
        void start(Transport fabric, StepMemory memory, int call) {
            if (count == 0) {
                end(fabric, memory, call);
            }
        }

        private void waitedFor(Transport fabric, StepMemory memory, int call) {
            // The last one acquires what the others have released.
            if (left.decrementAndGet() == 0) {
                end(fabric, memory, call);
            }
        }

        private void end(Transport fabric, StepMemory memory, int call) {
            endNs = System.nanoTime();
            done.raise(fabric, memory, call);
        }
    }

    /** Null if nobody waits for it; a copy's is raised by its move. */
    private final Signal signal;

    private final List<Join> joins = new ArrayList<>();

    Done(Signal signal) {
        this.signal = signal;
    }

    void ends(Join join) {
        joins.add(join);
    }

    /** Thread-safe. */
    void raise(Transport fabric, StepMemory memory, int call) {
        if (signal != null) {
            int value = (call - 1) * memory.stride() + (int) signal.value();
            long at = StepMemory.wordAt(signal.word());
            fabric.signal(memory.region(), signal.rank(), at, value);
        }
        for (int i = 0; i < joins.size(); i++) {
            joins.get(i).waitedFor(fabric, memory, call);
        }
    }
}
