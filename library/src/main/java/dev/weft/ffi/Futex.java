package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/**
 * Linux's compare-and-block on a 32-bit word, also between processes that map the same page. Any
 * thread may call; a blocked thread is in native code and does not hold up the collector.
 *
 * <p>Words are given by address: the caller keeps their memory mapped for as long as the call runs.
 */
public final class Futex {

    private static final int WAIT = 0;
    private static final int WAKE = 1;
    private static final int EAGAIN = 11;

    private static final Optional<String> UNAVAILABLE = SystemCall.unavailable(Futex::probe);

    private Futex() {}

    /** Why this machine has no futex for Java, or empty if it has one. */
    public static Optional<String> unavailable() {
        return UNAVAILABLE;
    }

    /** A wait with a wrong value must fail with EAGAIN; a sandbox may answer otherwise. */
    private static Optional<String> probe() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment word = arena.allocate(JAVA_INT);
            SystemCall.Result result = SystemCall.FUTEX.call(word.address(), WAIT, 1);
            return result.value() == -1 && result.errno() == EAGAIN
                    ? Optional.empty()
                    : Optional.of(
                            "futex probe returned %s with errno %s"
                                    .formatted(result.value(), result.errno()));
        }
    }

    /** A timeout for {@link #await}, made once and used often. */
    public static MemorySegment timeout(long ns, Arena arena) {
        MemorySegment timespec = arena.allocate(JAVA_LONG, 2);
        timespec.setAtIndex(JAVA_LONG, 0, ns / 1_000_000_000L);
        timespec.setAtIndex(JAVA_LONG, 1, ns % 1_000_000_000L);
        return timespec;
    }

    /**
     * Blocks while the word holds {@code expected}, until woken or timed out. May also return
     * spuriously: the caller checks the word again.
     */
    public static void await(long wordAddress, int expected, MemorySegment timeout) {
        // Every error of a probed futex (EAGAIN, ETIMEDOUT, EINTR) means "look again".
        SystemCall.FUTEX.attempt(wordAddress, WAIT, expected, timeout.address());
    }

    /** Wakes every thread, of any process, that is blocked on the word. */
    public static void wakeAll(long wordAddress) {
        SystemCall.FUTEX.attempt(wordAddress, WAKE, Integer.MAX_VALUE, 0);
    }
}
