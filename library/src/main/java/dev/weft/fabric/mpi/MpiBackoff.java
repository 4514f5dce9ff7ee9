package dev.weft.fabric.mpi;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.locks.LockSupport;

/**
 * The progress thread's backoff while nothing moves. MPI has no wait that leaves the core to
 * others, so the thread polls and sleeps in turn, and sleeps longer the longer nothing has moved. A
 * thread that sends a message wakes it.
 */
final class MpiBackoff {

    /** Polls without a sleep after something has moved: the next message often follows closely. */
    private static final int SPINS = 4;

    /**
     * A sleep lasts the time since something last moved, divided by this. So the added latency is
     * in proportion, whatever the link's speed. With 8 the thread took 5% of a core that was
     * computing, with 2 and the bounds below 3 to 4%.
     */
    private static final int DIVISOR = 2;

    private static final long SHORTEST_NS = 50_000;

    /** While messages are under way, and while none are. */
    private static final long LONGEST_BUSY_NS = Long.getLong("weft.mpi.nap.us", 2000) * 1000;

    private static final long LONGEST_IDLE_NS = 1_000_000;

    private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    private int idleRounds;
    private long movedAt = System.nanoTime();

    /** Something has moved. */
    void reset() {
        idleRounds = 0;
    }

    /** Spins or sleeps after a round in which nothing has moved. */
    void idle(boolean busy) {
        if (idleRounds++ == 0) {
            movedAt = System.nanoTime();
        }
        if (idleRounds <= SPINS) {
            Thread.onSpinWait();
            return;
        }
        long sleepNs = (System.nanoTime() - movedAt) / DIVISOR;
        long longest = Math.max(SHORTEST_NS, busy ? LONGEST_BUSY_NS : LONGEST_IDLE_NS);
        LockSupport.parkNanos(this, Math.clamp(sleepNs, SHORTEST_NS, longest));
    }

    long cpuNs(Thread thread) {
        return Math.max(0, threads.getThreadCpuTime(thread.threadId()));
    }
}
