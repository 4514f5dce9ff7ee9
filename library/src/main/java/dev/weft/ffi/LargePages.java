package dev.weft.ffi;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Memory in pages of 2 MiB where the system gives them. A large page is one piece of physical
 * memory, so that what fits a cache also finds its place there; of small pages, several may compete
 * for the same lines, as luck has it, for as long as the memory is in use.
 */
public final class LargePages {

    private static final long PAGE_BYTES = 2 << 20;
    private static final long LINE_BYTES = 64;

    private LargePages() {}

    /** Zeroed memory that begins at a cache line and goes when the arena closes. */
    public static MemorySegment allocate(long bytes, Arena arena) {
        try {
            return Mappings.available() ? map(bytes, arena) : arena.allocate(bytes, LINE_BYTES);
        } catch (IllegalStateException | LinkageError e) {
            // Java forbids native calls, or the system has no memory, which Java says best itself.
            return arena.allocate(bytes, LINE_BYTES);
        }
    }

    @SuppressWarnings("restricted")
    private static MemorySegment map(long bytes, Arena arena) {
        long whole = Math.ceilDiv(Math.max(1, bytes), PAGE_BYTES) * PAGE_BYTES;
        // One more, so that a page begins within the first.
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
