package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * Machine code that Weft has written, in memory of this process alone. The memory is first writable
 * and then executable, never both. It is between two guards, pages that cannot be accessed:
 *
 * <pre>
 * guard (64 KiB) | code, the rest of its last 64 KiB zero | guard
 * </pre>
 *
 * It stays as long as the process runs: a function in it never outlives its code, and a call need
 * not keep it alive. Thread-safe. Linux only.
 */
@SuppressWarnings("restricted")
public final class ExecutableMemory {

    /** A page on every machine, or several. */
    private static final long UNIT_BYTES = 64 << 10;

    private final MemorySegment code;

    private ExecutableMemory(MemorySegment code) {
        this.code = code;
    }

    /**
     * Puts code where it can be executed.
     *
     * @throws IllegalStateException that says in one line why the system does not allow it
     */
    public static ExecutableMemory of(byte[] code) {
        if (code.length == 0) {
            throw new IllegalArgumentException("no code: expected a byte at least");
        }
        if (!Mappings.available()) {
            throw new IllegalStateException(
                    "no executable memory: it is mapped as Linux does it, not as "
                            + System.getProperty("os.name"));
        }
        long bytes = Math.ceilDiv(code.length, UNIT_BYTES) * UNIT_BYTES;
        try {
            return write(code, bytes);
        } catch (IllegalStateException e) {
            throw new IllegalStateException("no executable memory: " + e.getMessage(), e);
        } catch (ExceptionInInitializerError e) {
            throw new IllegalStateException(
                    "no executable memory: " + e.getCause().getMessage(), e.getCause());
        }
    }

    private static ExecutableMemory write(byte[] code, long bytes) {
        long mapped = bytes + 2 * UNIT_BYTES;
        long start = Mappings.map(mapped, Mappings.NONE);
        long first = start + UNIT_BYTES;
        try {
            Mappings.protect(first, bytes, Mappings.READ_WRITE);
            MemorySegment memory = MemorySegment.ofAddress(first).reinterpret(bytes);
            memory.copyFrom(MemorySegment.ofArray(code));
            Mappings.protect(first, bytes, Mappings.READ_EXECUTE);
            InstructionCache.synchronize(first, first + bytes);
            return new ExecutableMemory(memory.asReadOnly());
        } catch (RuntimeException | Error e) {
            Mappings.unmap(start, mapped);
            throw e;
        }
    }

    /**
     * The function that begins at byte {@code offset}, for handles that take it as an argument. A
     * call that does not leave Java as far as the collector knows ({@code critical}) should take
     * microseconds, not milliseconds: the collector waits for it.
     */
    public MemorySegment entry(long offset) {
        return code.asSlice(offset);
    }

    /** Bound when first needed. */
    private static final class InstructionCache {

        /** For processors whose instruction caches do not see what is written; else null. */
        private static final MethodHandle CLEAR =
                System.getProperty("os.arch").equals("aarch64") ? bind() : null;

        private static MethodHandle bind() {
            return Linker.nativeLinker()
                    .downcallHandle(
                            NativeLibraries.open("libgcc_s.so.1").findOrThrow("__clear_cache"),
                            FunctionDescriptor.ofVoid(JAVA_LONG, JAVA_LONG));
        }

        /**
         * Lets every core see the code. Cores that are running other threads have fetched nothing
         * from these pages, which were not executable until now.
         */
        static void synchronize(long from, long to) {
            if (CLEAR == null) {
                return;
            }
            try {
                CLEAR.invokeExact(from, to);
            } catch (Throwable e) {
                throw new IllegalStateException("__clear_cache failed: " + e.getMessage(), e);
            }
        }
    }
}
