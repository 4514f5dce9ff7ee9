package dev.weft.ffi;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Memory in pages of 2 MiB if the system provides them. A large page is contiguous in physical
 * memory, so that what fits a cache really stays there; several small pages may happen to compete
 * for the same lines as long as the memory is in use.
 */
public final class LargePages {

    private static final long PAGE_BYTES = 2 << 20;
    private static final long SMALL_PAGE_BYTES = 4096;

    /** Smaller memory is not worth a large page. */
    private static final long LEAST_BYTES = 256 << 10;

    private LargePages() {}

    /**
     * Zeroed memory that begins at a page, large or small, and is freed when the arena closes. A
     * page is placed near the thread that first touches it.
     */
    public static MemorySegment allocate(long bytes, Arena arena) {
        if (bytes >= LEAST_BYTES && Mappings.available()) {
            try {
                return map(bytes, arena);
            } catch (IllegalStateException | LinkageError e) {
                // Java forbids native calls, or there is no memory, which Java itself reports best.
                return arena.allocate(bytes, SMALL_PAGE_BYTES);
            }
        }
        return arena.allocate(bytes, SMALL_PAGE_BYTES);
    }

    /**
     * Asks for large pages in memory that is already mapped, for example a file's. The system may
     * provide them, now or later; nothing else changes.
     */
    public static void prefer(MemorySegment mapped) {
        if (mapped.byteSize() >= LEAST_BYTES && Mappings.available()) {
            try {
                Mappings.preferHugePages(mapped.address(), mapped.byteSize());
            } catch (IllegalStateException | LinkageError e) {
                // Java forbids native calls: the pages stay as they are.
                return;
            }
        }
    }

    @SuppressWarnings("restricted")
    private static MemorySegment map(long bytes, Arena arena) {
        long whole = Math.ceilDiv(Math.max(1, bytes), PAGE_BYTES) * PAGE_BYTES;
        // One page more, so that a large page begins within the first.
        long mapped = whole + PAGE_BYTES;
        long start = Mappings.map(mapped, Mappings.READ_WRITE);
        long first = Math.ceilDiv(start, PAGE_BYTES) * PAGE_BYTES;
        try {
            Mappings.preferHugePages(first, whole);
            return MemorySegment.ofAddress(first)
                    .reinterpret(bytes, arena, memory -> Mappings.unmap(start, mapped));
        } catch (RuntimeException | Error e) {
            Mappings.unmap(start, mapped);
            throw e;
        }
    }
}
