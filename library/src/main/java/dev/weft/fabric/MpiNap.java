package dev.weft.fabric;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.locks.LockSupport;

/**
 * How the mail thread spends the time in which nothing moves: MPI has no way to wait that leaves
 * the core to others, so it looks, sleeps a little and looks again, sleeping longer the longer
 * nothing has come. Who posts a letter wakes it.
 */
final class MpiNap {

    /** Looks without sleep after something has moved: the next thing often follows closely. */
    private static final int LOOKS = 4;

    /**
     * A nap lasts this part of the time for which nothing has moved, so that what comes is seen
     * late by as little, whatever the link's speed. With an eighth the thread took up 5% of a core
     * that was computing, with a half and the bounds below 3 to 4%.
     */
    private static final int PART = 2;

    private static final long SHORTEST_NS = 50_000;

    /** While messages are under way, and while none are. */
    private static final long LONGEST_BUSY_NS = Long.getLong("weft.mpi.nap.us", 2000) * 1000;

    private static final long LONGEST_IDLE_NS = 1_000_000;

    private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    private int idleRounds;
    private long movedAt = System.nanoTime();

    void moved() {
        idleRounds = 0;
    }

    /**
     * @param busy whether messages are under way
     */
    void take(boolean busy) {
        if (idleRounds++ == 0) {
            movedAt = System.nanoTime();
        }
        if (idleRounds <= LOOKS) {
            Thread.onSpinWait();
            return;
        }
        long part = (System.nanoTime() - movedAt) / PART;
        long longest = Math.max(SHORTEST_NS, busy ? LONGEST_BUSY_NS : LONGEST_IDLE_NS);
        LockSupport.parkNanos(this, Math.clamp(part, SHORTEST_NS, longest));
    }

    long cpuNs(Thread thread) {
        return Math.max(0, threads.getThreadCpuTime(thread.threadId()));
    }
}
