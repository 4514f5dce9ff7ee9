package dev.weft.compat;

import dev.weft.cuda.GpuStream;
import dev.weft.ffi.CudaMemory;
import dev.weft.ffi.CudaStreams;

/**
 * Words in device memory, Weft's own or other code's, that say which chunks have arrived: 0 until a
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

    /** Queues a reset: no chunk is there. Not while a product waits: this could wait for it. */
    public void reset(GpuStream stream) {
        CudaMemory.fill32Async(address, 0, size, stream.handle());
    }

    /** Queues the signal that chunk {@code index} is there, after what was queued before. */
    public void publish(int index, GpuStream stream) {
        if (index < 0 || index >= size) {
            throw new IllegalArgumentException(
                    "progress of chunk " + index + ": expected 0 to " + (size - 1));
        }
        CudaStreams.writeValue32(stream.handle(), address + 4L * index, ARRIVED);
    }
}
