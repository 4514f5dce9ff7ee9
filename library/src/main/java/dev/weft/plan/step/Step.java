package dev.weft.plan.step;

import java.util.List;

/**
 * What a worker does at a time. A step names every step that it depends on, by its signal: those
 * that wrote what it reads, and those that read or wrote what it overwrites. Nothing follows from
 * the order of steps within a worker, which only says what to prefer. So a worker may have several
 * steps in progress, and a step that can start may be taken before one that cannot.
 *
 * <p>{@code firstRow} is the first row of the whole A, and of C, that a step is about. Reports and
 * timelines need it; nothing that is computed depends on it.
 */
public sealed interface Step {

    /** What must have happened before. */
    List<Signal> waits();

    /** What it raises when it is done; null if nobody waits for it. */
    Signal signal();

    /** The same step with other waits and another signal. */
    Step with(List<Signal> waits, Signal signal);

    /** Moves elements. How they travel is the transport's affair. */
    record Copy(Part from, Part to, long firstRow, List<Signal> waits, Signal signal)
            implements Step {

        public Copy {
            waits = List.copyOf(waits);
        }

        @Override
        public Copy with(List<Signal> newWaits, Signal newSignal) {
            return new Copy(from, to, firstRow, newWaits, newSignal);
        }
    }

    /**
     * Multiplies rows of A by B and sums over their columns in order.
     *
     * @param resume whether sums go on from what {@code into} holds; otherwise they start from zero
     * @param leastRows how many rows are worth multiplying once their own signals have come, while
     *     the rest of {@code a} is still on its way; 0 if the step starts when all have come
     */
    record Multiply(
            Part a,
            Part b,
            Part into,
            boolean resume,
            long leastRows,
            long firstRow,
            List<Signal> waits,
            Signal signal)
            implements Step {

        public Multiply {
            waits = List.copyOf(waits);
        }

        @Override
        public Multiply with(List<Signal> newWaits, Signal newSignal) {
            return new Multiply(a, b, into, resume, leastRows, firstRow, newWaits, newSignal);
        }
    }

    /** Adds parts from the first to the last, in fp32. One part into C only finishes its sums. */
    record Add(List<Part> addends, Part into, long firstRow, List<Signal> waits, Signal signal)
            implements Step {

        public Add {
            addends = List.copyOf(addends);
            waits = List.copyOf(waits);
        }

        @Override
        public Add with(List<Signal> newWaits, Signal newSignal) {
            return new Add(addends, into, firstRow, newWaits, newSignal);
        }
    }

    /** Does nothing but wait: its signal stands for all that it has waited for. */
    record Join(List<Signal> waits, Signal signal) implements Step {

        public Join {
            waits = List.copyOf(waits);
        }

        @Override
        public Join with(List<Signal> newWaits, Signal newSignal) {
            return new Join(newWaits, newSignal);
        }
    }
}
