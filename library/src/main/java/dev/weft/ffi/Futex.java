package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
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

    /** Why futexes cannot be used here, or empty. Initialised first: the probe below sets it. */
    private static final Optional<String> UNAVAILABLE;

    private static final MethodHandle SYSCALL;
    private static final long NUMBER;

    static {
        MethodHandle handle = null;
        String reason = null;
        NUMBER = syscallNumber();
        if (NUMBER < 0) {
            reason =
                    "no futex system call known for %s on %s"
                            .formatted(
                                    System.getProperty("os.name"), System.getProperty("os.arch"));
        } else {
            try {
                handle = bind();
                reason = probe();
            } catch (Throwable e) {
                // Linking fails in many ways (no permission, no symbol); all mean "not available".
                reason = e.toString();
            }
        }
        SYSCALL = handle;
        UNAVAILABLE = Optional.ofNullable(reason);
    }

    private Futex() {}

    private static long syscallNumber() {
        if (!System.getProperty("os.name").equals("Linux")) {
            return -1;
        }
        return switch (System.getProperty("os.arch")) {
            case "amd64" -> 202;
            case "aarch64", "riscv64" -> 98;
            default -> -1;
        };
    }

    /** Why this machine has no futex for Java, or empty if it has one. */
    public static Optional<String> unavailable() {
        return UNAVAILABLE;
    }

    @SuppressWarnings("restricted")
    private static MethodHandle bind(Linker.Option... more) {
        Linker.Option[] options = new Linker.Option[more.length + 1];
        options[0] = Linker.Option.firstVariadicArg(1);
        System.arraycopy(more, 0, options, 1, more.length);
        Linker linker = Linker.nativeLinker();
        // syscall(number, word, operation, value, timeout, second word, third value)
        return linker.downcallHandle(
                linker.defaultLookup().findOrThrow("syscall"),
                FunctionDescriptor.of(
                        JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_LONG,
                        JAVA_LONG),
                options);
    }

    /** A wait whose value does not match must fail with EAGAIN; a sandbox may answer otherwise. */
    private static String probe() throws Throwable {
        StructLayout state = Linker.Option.captureStateLayout();
        VarHandle errno = state.varHandle(MemoryLayout.PathElement.groupElement("errno"));
        MethodHandle call = bind(Linker.Option.captureCallState("errno"));
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment captured = arena.allocate(state);
            MemorySegment word = arena.allocate(JAVA_INT);
            long result =
                    (long)
                            call.invokeExact(
                                    captured,
                                    NUMBER,
                                    word.address(),
                                    (long) WAIT,
                                    1L,
                                    MemorySegment.NULL,
                                    0L,
                                    0L);
            int code = (int) errno.get(captured, 0L);
            return result == -1 && code == EAGAIN
                    ? null
                    : "futex probe returned " + result + " with errno " + code;
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
     * Blocks while the word holds {@code expected}, until woken or timed out. May also return for
     * no reason: the caller looks at the word again.
     */
    public static void await(long wordAddress, int expected, MemorySegment timeout) {
        call(wordAddress, WAIT, expected, timeout);
    }

    /** Wakes every thread, of any process, that is blocked on the word. */
    public static void wakeAll(long wordAddress) {
        call(wordAddress, WAKE, Integer.MAX_VALUE, MemorySegment.NULL);
    }

    private static void call(long wordAddress, int operation, int value, MemorySegment timeout) {
        try {
            // Every error of a probed futex (EAGAIN, ETIMEDOUT, EINTR) means "look again".
            long ignored =
                    (long)
                            SYSCALL.invokeExact(
                                    NUMBER,
                                    wordAddress,
                                    (long) operation,
                                    (long) value,
                                    timeout,
                                    0L,
                                    0L);
        } catch (Throwable e) {
            throw new IllegalStateException(
                    "futex(" + wordAddress + ", " + operation + ", " + value + ") failed", e);
        }
    }
}
