package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * How long the calling thread wants to run in one go. Linux (from 6.12 on) lets a thread that wants
 * little, and wakes up, interrupt one that computes at once; otherwise it may have to wait for some
 * milliseconds. Older kernels take no notice. Any thread may call it, for itself.
 */
public final class TimeSlice {

    private static final int ATTRIBUTE_BYTES = 48;
    private static final long SIZE_AT = 0;
    private static final long RUNTIME_AT = 24;

    private TimeSlice() {}

    /** Whether the kernel has heard of it. */
    public static boolean request(long ns) {
        long number = setAttribute();
        if (number < 0) {
            return false;
        }
        try (Arena arena = Arena.ofConfined()) {
            MethodHandle syscall = bind();
            MemorySegment attributes = arena.allocate(ATTRIBUTE_BYTES, Long.BYTES);
            // The number of the call that reads them is the next one, on both processors.
            long read =
                    (long)
                            syscall.invokeExact(
                                    number + 1, 0L, attributes, (long) ATTRIBUTE_BYTES, 0L);
            if (read != 0) {
                return false;
            }
            attributes.set(JAVA_INT, SIZE_AT, ATTRIBUTE_BYTES);
            attributes.set(JAVA_LONG, RUNTIME_AT, ns);
            return (long) syscall.invokeExact(number, 0L, attributes, 0L, 0L) == 0;
        } catch (Throwable e) {
            // Where Java may not call natively, the thread waits its turn.
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "no time slice", e);
            return false;
        }
    }

    private static long setAttribute() {
        if (!System.getProperty("os.name").equals("Linux")) {
            return -1;
        }
        return switch (System.getProperty("os.arch")) {
            case "amd64" -> 314;
            case "aarch64", "riscv64" -> 274;
            default -> -1;
        };
    }

    @SuppressWarnings("restricted")
    private static MethodHandle bind() {
        Linker linker = Linker.nativeLinker();
        // syscall(number, thread, attributes, flags or size, flags)
        return linker.downcallHandle(
                linker.defaultLookup().findOrThrow("syscall"),
                FunctionDescriptor.of(
                        JAVA_LONG, JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_LONG, JAVA_LONG),
                Linker.Option.firstVariadicArg(1));
    }
}
