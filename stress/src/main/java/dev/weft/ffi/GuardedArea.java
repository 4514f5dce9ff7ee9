package dev.weft.ffi;

import java.lang.foreign.MemorySegment;

/**
 * Memory between two pages that nobody may touch, mapped for as long as the process. Linux only.
 */
@SuppressWarnings("restricted")
public final class GuardedArea {

    private static final long GUARD_BYTES = 64 << 10;

    private final MemorySegment memory;

    /**
     * @param bytes a multiple of 64 KiB
     */
    public GuardedArea(long bytes) {
        long start = Mappings.map(bytes + 2 * GUARD_BYTES, Mappings.NONE);
        Mappings.protect(start + GUARD_BYTES, bytes, Mappings.READ_WRITE);
        memory = MemorySegment.ofAddress(start + GUARD_BYTES).reinterpret(bytes);
    }

    /** So many bytes, flush with the guard behind them or with that before them. */
    public MemorySegment take(long bytes, boolean atEnd) {
        return memory.asSlice(atEnd ? memory.byteSize() - bytes : 0, bytes);
    }
}
