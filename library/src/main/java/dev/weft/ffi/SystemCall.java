package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * The system calls of Linux that Weft makes. All go through one function, {@code syscall}, since
 * each bound function adds some milliseconds to a start. Thread-safe.
 */
enum SystemCall {
    MMAP(9, 222),
    MPROTECT(10, 226),
    MUNMAP(11, 215),
    MADVISE(28, 233),
    ARCH_PRCTL(158, -1),
    FUTEX(202, 98),
    SCHED_SETAFFINITY(203, 122),
    SCHED_GETAFFINITY(204, 123);

    /** Memory for errors that nobody reads. */
    private static final MemorySegment IGNORED = state(Arena.global());

    private static final long ERRNO =
            Linker.Option.captureStateLayout()
                    .byteOffset(MemoryLayout.PathElement.groupElement("errno"));

    private final long number;

    /** Its numbers on amd64, and on processors that Linux added later; -1 if it has none. */
    SystemCall(long amd64, long later) {
        String os = System.getProperty("os.name");
        number =
                switch (os.equals("Linux") ? System.getProperty("os.arch") : os) {
                    case "amd64" -> amd64;
                    case "aarch64", "riscv64" -> later;
                    default -> -1;
                };
    }

    /** Bound when first needed. */
    private static final class Bound {
        static final MethodHandle FUNCTION = bind();

        @SuppressWarnings("restricted")
        private static MethodHandle bind() {
            Linker linker = Linker.nativeLinker();
            return linker.downcallHandle(
                    linker.defaultLookup().findOrThrow("syscall"),
                    FunctionDescriptor.of(
                            JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG,
                            JAVA_LONG, JAVA_LONG),
                    Linker.Option.firstVariadicArg(1),
                    Linker.Option.captureCallState("errno"));
        }
    }

    /** Whether the number of this call is known for this machine. */
    boolean isKnown() {
        return number >= 0;
    }

    /** What a call returned, -1 if it failed, and its error in that case. */
    record Result(long value, int errno) {}

    /** Makes the call with three arguments. */
    Result call(long a, long b, long c) {
        return call(a, b, c, 0, 0, 0);
    }

    Result call(long a, long b, long c, long d, long e, long f) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = state(arena);
            long value = call(state, a, b, c, d, e, f);
            return new Result(value, state.get(JAVA_INT, ERRNO));
        }
    }

    /** Makes the call; its error does not matter. Allocates nothing on the Java heap. */
    void attempt(long a, long b, long c, long d) {
        long ignored = call(IGNORED, a, b, c, d, 0, 0);
    }

    private static MemorySegment state(Arena arena) {
        return arena.allocate(Linker.Option.captureStateLayout());
    }

    private long call(MemorySegment state, long a, long b, long c, long d, long e, long f) {
        if (!isKnown()) {
            throw new IllegalStateException(
                    "no system call %s known for %s on %s"
                            .formatted(
                                    this,
                                    System.getProperty("os.name"),
                                    System.getProperty("os.arch")));
        }
        try {
            return (long) Bound.FUNCTION.invokeExact(state, number, a, b, c, d, e, f);
        } catch (RuntimeException | Error failure) {
            throw failure;
        } catch (Throwable failure) {
            throw new IllegalStateException(this + " failed: " + failure.getMessage(), failure);
        }
    }

    /**
     * Why something cannot be used here, or empty if it can.
     *
     * @param probe uses it; its answer is why it does not work, or empty
     */
    static Optional<String> unavailable(Supplier<Optional<String>> probe) {
        try {
            return probe.get();
        } catch (Throwable e) {
            // Binding fails in many ways (no permission, no symbol); all mean "not available".
            return Optional.of(e.getMessage() == null ? e.toString() : e.getMessage());
        }
    }

    /** The name that programs use. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
