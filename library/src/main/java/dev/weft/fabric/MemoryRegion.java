package dev.weft.fabric;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * A region whose parts are all mapped here. In front of each part lies a header that only the
 * fabric sees:
 *
 * <pre>
 * byte    0 4 bytes  waiters: threads of any process blocked on a word of this part (atomic add)
 * byte 4096 the part as its user sees it
 * </pre>
 */
final class MemoryRegion implements Region {

    /** A page, so that parts start on one too. */
    static final long HEADER_BYTES = 4096;

    private static final long WAITERS = 0;

    private final MemorySegment[] whole;
    private final MemorySegment[] parts;
    private final Runnable release;
    private boolean closed;

    /**
     * @param whole each rank's header and part
     */
    MemoryRegion(MemorySegment[] whole, Runnable release) {
        this.whole = whole;
        this.release = release;
        this.parts = new MemorySegment[whole.length];
        for (int r = 0; r < whole.length; r++) {
            parts[r] = whole[r].asSlice(HEADER_BYTES);
        }
    }

    @Override
    public MemorySegment part(int rank) {
        return parts[rank];
    }

    /** The same memory seen by {@code size} consecutive ranks from {@code first} on. */
    MemoryRegion subset(int first, int size) {
        return new MemoryRegion(Arrays.copyOfRange(whole, first, first + size), this::close);
    }

    int waiters(int rank) {
        return Words.intVolatile(whole[rank], WAITERS);
    }

    void addWaiters(int rank, int delta) {
        Words.intAdd(whole[rank], WAITERS, delta);
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            release.run();
        }
    }
}
