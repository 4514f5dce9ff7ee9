package dev.weft.time;

import java.time.Duration;

/**
 * Time towards a deadline, as waits that look again and again count it. Time in which the waiting
 * process did not run is left out: a job that is stopped and continued as a whole has not stalled.
 */
public final class WaitTime {

    /**
     * The most that counts between two looks. All waits look many times a second, so more means
     * that the process was stopped or the machine suspended, and its peers probably were as well.
     */
    private static final long MOST_NS = 500_000_000L;

    /** Longer deadlines are for ever; sums of some of them stay within 64 bits. */
    private static final Duration LONGEST = Duration.ofDays(25_000);

    private WaitTime() {}

    /** What counts of the time between two looks, both by {@link System#nanoTime()}. */
    public static long counted(long fromNs, long toNs) {
        return Math.min(toNs - fromNs, MOST_NS);
    }

    /** The deadline in nanoseconds. */
    public static long nanoseconds(Duration deadline) {
        return deadline.compareTo(LONGEST) < 0 ? deadline.toNanos() : LONGEST.toNanos();
    }
}
