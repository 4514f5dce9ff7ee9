package dev.weft.ffi;

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
        return done(
                SystemCall.MMAP.call(0, bytes, protection, PRIVATE_ANONYMOUS, -1, 0),
                "mmap",
                bytes);
    }

    static void protect(long address, long bytes, int protection) {
        String what = protection == READ_EXECUTE ? "mprotect(executable)" : "mprotect";
        done(SystemCall.MPROTECT.call(address, bytes, protection), what, bytes);
    }

    /** Asks for pages of 2 MiB; a system that has none refuses, which does no harm. */
    static void preferHugePages(long address, long bytes) {
        SystemCall.MADVISE.attempt(address, bytes, HUGE_PAGES, 0);
    }

    static void unmap(long address, long bytes) {
        SystemCall.MUNMAP.attempt(address, bytes, 0, 0);
    }

    private static long done(SystemCall.Result result, String function, long bytes) {
        if (result.value() == -1) {
            throw new IllegalStateException(
                    "%s of %s bytes failed with errno %s"
                            .formatted(function, bytes, result.errno()));
        }
        return result.value();
    }
}
