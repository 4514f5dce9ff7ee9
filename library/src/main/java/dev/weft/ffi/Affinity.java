package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import java.util.Optional;

/**
 * The CPUs on which Linux may run the calling thread. Every call is about the thread that makes it,
 * which must be a platform thread; threads that it starts afterwards inherit its CPUs. CPUs up to
 * number 1023 are known.
 *
 * <pre>
 * cpu_set_t: 16 longs; CPU c is bit c % 64 of long c / 64
 * </pre>
 */
public final class Affinity {

    private static final int MAX_CPUS = 1024;
    private static final long SET_BYTES = MAX_CPUS / Byte.SIZE;
    private static final int CALLING_THREAD = 0;
    private static final int EINVAL = 22;

    /** A sandbox may forbid it, and a kernel with more CPUs refuses such a small set. */
    private static final Optional<String> UNAVAILABLE =
            SystemCall.unavailable(
                    () -> {
                        read();
                        return Optional.empty();
                    });

    private Affinity() {}

    /** Why threads cannot be pinned here, or empty if they can. */
    public static Optional<String> unavailable() {
        return UNAVAILABLE;
    }

    /** The CPUs on which the calling thread may run, in ascending order. */
    public static int[] allowed() {
        requireUsable();
        return read();
    }

    /**
     * Keeps the calling thread on one CPU.
     *
     * @return false if the process may not use that CPU
     */
    public static boolean pin(int cpu) {
        requireUsable();
        if (cpu < 0 || cpu >= MAX_CPUS) {
            throw new IllegalArgumentException("CPU " + cpu + ": expected 0 to " + (MAX_CPUS - 1));
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment cpuSet = arena.allocate(SET_BYTES, Long.BYTES);
            cpuSet.setAtIndex(JAVA_LONG, cpu / Long.SIZE, 1L << cpu % Long.SIZE);
            int errno = errno(SystemCall.SCHED_SETAFFINITY, cpuSet);
            if (errno != 0 && errno != EINVAL) {
                throw failed("sched_setaffinity", "CPU " + cpu, errno);
            }
            return errno == 0;
        }
    }

    private static int[] read() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment cpuSet = arena.allocate(SET_BYTES, Long.BYTES);
            int errno = errno(SystemCall.SCHED_GETAFFINITY, cpuSet);
            if (errno != 0) {
                throw failed("sched_getaffinity", "", errno);
            }
            return BitSet.valueOf(cpuSet.toArray(JAVA_LONG)).stream().toArray();
        }
    }

    /** Makes one of the two calls for the calling thread; 0 if it succeeded. */
    private static int errno(SystemCall onSet, MemorySegment cpuSet) {
        SystemCall.Result result = onSet.call(CALLING_THREAD, SET_BYTES, cpuSet.address());
        return result.value() >= 0 ? 0 : result.errno();
    }

    private static void requireUsable() {
        if (UNAVAILABLE.isPresent()) {
            throw new IllegalStateException("threads cannot be pinned: " + UNAVAILABLE.get());
        }
        if (Thread.currentThread().isVirtual()) {
            throw new IllegalStateException(
                    "a virtual thread has no CPUs of its own: call from a platform thread");
        }
    }

    private static IllegalStateException failed(String function, String arguments, int errno) {
        return new IllegalStateException(
                "%s(%s) failed with errno %s%s"
                        .formatted(function, arguments, errno, errno == EINVAL ? " (EINVAL)" : ""));
    }
}
