package dev.weft.cuda;

import dev.weft.ffi.CudaMemory;

/** Memory of the GPU that was bound when it was allocated. One thread closes it. */
public final class DeviceBuffer implements AutoCloseable {

    private final long address;
    private final long bytes;
    private boolean closed;

    private DeviceBuffer(long address, long bytes) {
        this.address = address;
        this.bytes = bytes;
    }

    /** Aligned to 256 bytes; its content is undefined. */
    public static DeviceBuffer allocate(long bytes) {
        if (bytes < 1) {
            throw new IllegalArgumentException(
                    "device memory of " + bytes + " bytes: expected at least one");
        }
        return new DeviceBuffer(CudaMemory.allocate(bytes), bytes);
    }

    /** Zeroed, so that what never arrives is not taken for that of an earlier program. */
    public static DeviceBuffer zeroed(long bytes, GpuStream stream) {
        DeviceBuffer buffer = allocate(bytes);
        CudaMemory.fill8Async(buffer.address, (byte) 0, bytes, stream.handle());
        stream.synchronize();
        return buffer;
    }

    public long address() {
        return address;
    }

    public long bytes() {
        return bytes;
    }

    /** Waits for the device's work. */
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            CudaMemory.free(address);
        }
    }
}
