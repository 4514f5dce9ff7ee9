package dev.weft.cuda;

import dev.weft.ffi.CudaMemory;
import dev.weft.ffi.CudaStreams;

/**
 * Words in device memory, Weft's own or anybody else's, that tell which chunks are there: 0 until a
 * chunk has arrived, then 1. It owns nothing. Threads with a bound GPU may call.
 *
 * @param size number of 32-bit words
 */
public record DeviceProgress(long address, int size) {

    /** What a word holds once its chunk is there. */
    public static final int ARRIVED = 1;

    public DeviceProgress {
        if (address == 0 || address % Integer.BYTES != 0 || size < 1) {
            throw new IllegalArgumentException(
                    ("progress of %s words at %s: expected at least one word, at an address"
                                    + " that is a multiple of 4")
                            .formatted(size, address));
        }
    }

    /** Queues that no chunk is there. Not beside a product that waits: it could wait for that. */
    public void reset(GpuStream stream) {
        CudaMemory.fill32Async(address, 0, size, stream.handle());
    }

    /** Queues that chunk {@code index} is there; what was queued before is visible by then. */
    public void publish(int index, GpuStream stream) {
        if (index < 0 || index >= size) {
            throw new IllegalArgumentException(
                    "progress of chunk " + index + ": expected 0 to " + (size - 1));
        }
        CudaStreams.writeValue32(stream.handle(), address + 4L * index, ARRIVED);
    }
}
