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

    private static final StructLayout STATE = Linker.Option.captureStateLayout();
    private static final VarHandle ERRNO =
            STATE.varHandle(MemoryLayout.PathElement.groupElement("errno"));

    private static final MethodHandle GET;
    private static final MethodHandle SET;
    private static final MethodHandle CURRENT;
    private static final Throwable LOAD_ERROR;

    static {
        MethodHandle get = null;
        MethodHandle set = null;
        MethodHandle current = null;
        Throwable failure = null;
        try {
            requireLinux();
            FunctionDescriptor onSet =
                    FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG, ADDRESS);
            get = bind("sched_getaffinity", onSet);
            set = bind("sched_setaffinity", onSet);
            current = bind("sched_getcpu", FunctionDescriptor.of(JAVA_INT));
            // A sandbox may forbid it, and a kernel for more CPUs refuses so small a set.
            read(get);
        } catch (Throwable e) {
            // Linking fails in many ways (no permission, no symbol); all mean "not available".
            failure = e;
        }
        GET = get;
        SET = set;
        CURRENT = current;
        LOAD_ERROR = failure;
    }

    private Affinity() {}

    /** Why threads cannot be pinned here, or empty if they can. */
    public static Optional<String> unavailable() {
        return Optional.ofNullable(LOAD_ERROR)
                .map(e -> e.getMessage() == null ? e.toString() : e.getMessage());
    }

    /** The CPUs on which the calling thread may run, in ascending order. */
    public static int[] allowed() {
        requireUsable();
        return read(GET);
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
            int errno = errno(SET, cpuSet, arena);
            if (errno != 0 && errno != EINVAL) {
                throw failed("sched_setaffinity", "CPU " + cpu, errno);
            }
            return errno == 0;
        }
    }

    /** The CPU that the calling thread is running on; it may be another one right afterwards. */
    public static int current() {
        requireUsable();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(STATE);
            int cpu = (int) CURRENT.invokeExact(state);
            if (cpu < 0) {
                throw failed("sched_getcpu", "", (int) ERRNO.get(state, 0L));
            }
            return cpu;
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException("sched_getcpu() failed", e);
        }
    }

    private static int[] read(MethodHandle get) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment cpuSet = arena.allocate(SET_BYTES, Long.BYTES);
            int errno = errno(get, cpuSet, arena);
            if (errno != 0) {
                throw failed("sched_getaffinity", "", errno);
            }
            return BitSet.valueOf(cpuSet.toArray(JAVA_LONG)).stream().toArray();
        }
    }

    /** Calls one of the two about the calling thread; 0 where it has gone well. */
    private static int errno(MethodHandle onSet, MemorySegment cpuSet, Arena arena) {
        MemorySegment state = arena.allocate(STATE);
        try {
            int code = (int) onSet.invokeExact(state, CALLING_THREAD, SET_BYTES, cpuSet);
            return code >= 0 ? 0 : (int) ERRNO.get(state, 0L);
        } catch (Throwable e) {
            throw new IllegalStateException("a thread's CPUs can be neither read nor set", e);
        }
    }

    private static void requireUsable() {
        if (LOAD_ERROR != null) {
            throw new IllegalStateException(
                    "threads cannot be pinned: " + unavailable().orElseThrow(), LOAD_ERROR);
        }
        if (Thread.currentThread().isVirtual()) {
            throw new IllegalStateException(
                    "a virtual thread has no CPUs of its own: call from a platform thread");
        }
    }

    private static void requireLinux() {
        if (!System.getProperty("os.name").equals("Linux")) {
            throw new IllegalStateException(
                    "no call known for " + System.getProperty("os.name") + ", only for Linux");
        }
    }

    private static IllegalStateException failed(String function, String arguments, int errno) {
        return new IllegalStateException(
                "%s(%s) failed with errno %s%s"
                        .formatted(function, arguments, errno, errno == EINVAL ? " (EINVAL)" : ""));
    }

    @SuppressWarnings("restricted")
    private static MethodHandle bind(String function, FunctionDescriptor descriptor) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(
                linker.defaultLookup().findOrThrow(function),
                descriptor,
                Linker.Option.captureCallState("errno"));
    }
}
