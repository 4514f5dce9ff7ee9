package dev.weft.plan.step;

import java.util.List;

/**
 * Steps of a rank in the order in which they are to be taken.
 *
 * @param kind what takes them
 */
public record Worker(Kind kind, List<Step> steps) {

    /** What takes the steps of a worker. */
    public enum Kind {
        /** A lane: a thread or a copy stream, which copies. */
        MOVER,
        /** Threads or thread blocks, which multiply and add. */
        MULTIPLIER
    }

    public Worker {
        steps = List.copyOf(steps);
    }
}
