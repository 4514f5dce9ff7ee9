package dev.weft.cuda.kernel;

import dev.weft.ffi.CudaMemory;
import java.lang.foreign.MemorySegment;

/** Host memory that copy engines and kernels reach at its own address. */
public final class PinnedBuffer implements AutoCloseable {

    private final MemorySegment segment;
    private final boolean own;
    private boolean closed;

    private PinnedBuffer(MemorySegment segment, boolean own) {
        this.segment = segment;
        this.own = own;
    }

    /** Zeroed. */
    public static PinnedBuffer allocate(long bytes) {
        if (bytes < 1) {
            throw new IllegalArgumentException(
                    "pinned memory of " + bytes + " bytes: expected at least one");
        }
        return new PinnedBuffer(CudaMemory.allocateHost(bytes).fill((byte) 0), true);
    }

    /** Pins memory of another owner until this is closed: whole pages, each pinned only once. */
    public static PinnedBuffer over(MemorySegment pages) {
        CudaMemory.registerHost(pages);
        return new PinnedBuffer(pages, false);
    }

    public MemorySegment segment() {
        return segment;
    }

    public long address() {
        return segment.address();
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            if (own) {
                CudaMemory.freeHost(segment);
            } else {
                CudaMemory.unregisterHost(segment);
            }
        }
    }
}
