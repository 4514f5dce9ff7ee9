package dev.weft.cuda;

import dev.weft.ffi.CudaMemory;
import java.lang.foreign.MemorySegment;

/** Zeroed host memory that copy engines and kernels reach at its own address. */
public final class PinnedBuffer implements AutoCloseable {

    private final MemorySegment segment;
    private boolean closed;

    private PinnedBuffer(MemorySegment segment) {
        this.segment = segment;
    }

    public static PinnedBuffer allocate(long bytes) {
        if (bytes < 1) {
            throw new IllegalArgumentException(
                    "pinned memory of " + bytes + " bytes: expected at least one");
        }
        return new PinnedBuffer(CudaMemory.allocateHost(bytes, false).fill((byte) 0));
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
            CudaMemory.freeHost(segment);
        }
    }
}
