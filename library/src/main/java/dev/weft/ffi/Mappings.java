package dev.weft.ffi;

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

/**
 * Private memory that Linux maps for this process: {@code mmap} and its siblings. Any thread may
 * call. Every failure is an {@link IllegalStateException} of one line.
 */
@SuppressWarnings("restricted")
final class Mappings {

    static final int NONE = 0;
    static final int READ_WRITE = 3;
    static final int READ_EXECUTE = 5;

    private static final int PRIVATE_ANONYMOUS = 0x22;
    private static final int HUGE_PAGES = 14;

    private static final StructLayout STATE = Linker.Option.captureStateLayout();
    private static final VarHandle ERRNO =
            STATE.varHandle(MemoryLayout.PathElement.groupElement("errno"));

    private static final MethodHandle MMAP =
            bind("mmap", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG);
    private static final MethodHandle MPROTECT =
            bind("mprotect", JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT);
    private static final MethodHandle MADVISE =
            bind("madvise", JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT);
    private static final MethodHandle MUNMAP = bind("munmap", JAVA_INT, JAVA_LONG, JAVA_LONG);

    private Mappings() {}

    /** Whether these functions have the constants that this class knows. */
    static boolean available() {
        return System.getProperty("os.name").equals("Linux");
    }

    /** The address of {@code bytes} of zeroed memory. */
    static long map(long bytes, int protection) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(STATE);
            long address =
                    (long)
                            MMAP.invokeExact(
                                    state, 0L, bytes, protection, PRIVATE_ANONYMOUS, -1, 0L);
            check(address != -1, "mmap", bytes, state);
            return address;
        } catch (Throwable e) {
            throw failed("mmap", e);
        }
    }

    static void protect(long address, long bytes, int protection) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(STATE);
            int result = (int) MPROTECT.invokeExact(state, address, bytes, protection);
            String what = protection == READ_EXECUTE ? "mprotect(executable)" : "mprotect";
            check(result == 0, what, bytes, state);
        } catch (Throwable e) {
            throw failed("mprotect", e);
        }
    }

    /** Asks for pages of 2 MiB; a system that has none refuses, and nothing is lost. */
    static void preferHugePages(long address, long bytes) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(STATE);
            int ignored = (int) MADVISE.invokeExact(state, address, bytes, HUGE_PAGES);
        } catch (Throwable e) {
            throw failed("madvise", e);
        }
    }

    static void unmap(long address, long bytes) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(STATE);
            int ignored = (int) MUNMAP.invokeExact(state, address, bytes);
        } catch (Throwable e) {
            throw failed("munmap", e);
        }
    }

    private static void check(boolean done, String function, long bytes, MemorySegment state) {
        if (!done) {
            throw new IllegalStateException(
                    "%s of %s bytes failed with errno %s"
                            .formatted(function, bytes, (int) ERRNO.get(state, 0L)));
        }
    }

    private static IllegalStateException failed(String function, Throwable e) {
        if (e instanceof Error error) {
            throw error;
        }
        return e instanceof IllegalStateException told
                ? told
                : new IllegalStateException(function + " failed: " + e.getMessage(), e);
    }

    private static MethodHandle bind(String name, MemoryLayout result, MemoryLayout... parameters) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(
                linker.defaultLookup().findOrThrow(name),
                FunctionDescriptor.of(result, parameters),
                Linker.Option.captureCallState("errno"));
    }
}
