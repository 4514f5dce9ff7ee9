package dev.weft.process;

import java.time.Duration;

/**
 * The time that counts towards a deadline, for waits that poll. Time in which the process did not
 * run is left out: a job that is stopped and continued as a whole has not stalled.
 */
public final class WaitTime {

    /**
     * The most that counts between two polls. All waits poll many times a second, so a longer time
     * means that the process was stopped or the machine suspended, and probably its peers too.
     */
    private static final long MOST_NS = 500_000_000L;

    /** The longest deadline; sums of a few fit into 64 bits. */
    private static final Duration LONGEST = Duration.ofDays(25_000);

    private WaitTime() {}

    /** The time that counts between two polls, both by {@link System#nanoTime()}. */
    public static long counted(long fromNs, long toNs) {
        return Math.min(toNs - fromNs, MOST_NS);
    }

    /** The deadline in nanoseconds. */
    public static long nanoseconds(Duration deadline) {
        return deadline.compareTo(LONGEST) < 0 ? deadline.toNanos() : LONGEST.toNanos();
    }
}
