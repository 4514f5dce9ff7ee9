package dev.weft.ffi;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Private memory that Linux maps for this process: {@code mmap} and related calls. Thread-safe.
 * Every failure is an {@link IllegalStateException} with a one-line message.
 */
final class Mappings {

    static final int NONE = 0;
    static final int READ_WRITE = 3;
    static final int READ_EXECUTE = 5;

    private static final int PRIVATE_ANONYMOUS = 0x22;
    private static final int HUGE_PAGES = 14;

    private Mappings() {}

    /** Whether this machine has these calls. */
    static boolean available() {
        return SystemCall.MMAP.isKnown();
    }

    /** The address of {@code bytes} of zeroed memory. */
    static long map(long bytes, int protection) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = SystemCall.state(arena);
            long address =
                    SystemCall.MMAP.call(state, 0, bytes, protection, PRIVATE_ANONYMOUS, -1, 0);
            check(address != -1, "mmap", bytes, state);
            return address;
        }
    }

    static void protect(long address, long bytes, int protection) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = SystemCall.state(arena);
            long result = SystemCall.MPROTECT.call(state, address, bytes, protection);
            String what = protection == READ_EXECUTE ? "mprotect(executable)" : "mprotect";
            check(result == 0, what, bytes, state);
        }
    }

    /** Asks for pages of 2 MiB; a system that has none refuses, which does no harm. */
    static void preferHugePages(long address, long bytes) {
        long ignored = SystemCall.MADVISE.call(SystemCall.IGNORED, address, bytes, HUGE_PAGES);
    }

    static void unmap(long address, long bytes) {
        long ignored = SystemCall.MUNMAP.call(SystemCall.IGNORED, address, bytes, 0);
    }

    private static void check(boolean done, String function, long bytes, MemorySegment state) {
        if (!done) {
            throw new IllegalStateException(
                    "%s of %s bytes failed with errno %s"
                            .formatted(function, bytes, SystemCall.errno(state)));
        }
    }
}
