package dev.weft.fabric.memory;

import java.util.concurrent.atomic.AtomicLong;

/**
 * One experiment, with a slot of its own in {@link Slots}. The harness runs each test in a process
 * of its own, so that one count of experiments serves all tests.
 */
public abstract class Experiment {

    private static final AtomicLong TAKEN = new AtomicLong();

    protected final long number = TAKEN.getAndIncrement();

    /** Which of the equal pieces of a memory is this experiment's. */
    protected final int slot = (int) (number % Slots.COUNT);

    /** Grows by one each time that a slot is used again; words are zero before the first. */
    protected final int epoch = (int) (number / Slots.COUNT) + 1;
}
