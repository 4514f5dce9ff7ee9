package dev.weft.cuda;

import dev.weft.ffi.CudaStreams;

/** A queue of work on one GPU: Weft's own, or a caller's. */
public final class GpuStream implements AutoCloseable {

    private final long handle;
    private final boolean own;
    private boolean closed;

    private GpuStream(long handle, boolean own) {
        this.handle = handle;
        this.own = own;
    }

    /** A new stream on the GPU that is bound. */
    public static GpuStream create() {
        return new GpuStream(CudaStreams.create(0), true);
    }

    /** A new stream of high priority. */
    public static GpuStream urgent() {
        return new GpuStream(CudaStreams.create(CudaStreams.priorityRange()[1]), true);
    }

    /** A caller's stream (a {@code CUstream}), which closing this leaves alone. */
    public static GpuStream of(long handle) {
        return new GpuStream(handle, false);
    }

    public long handle() {
        return handle;
    }

    /** Blocks until all work queued so far is done. */
    public void synchronize() {
        CudaStreams.synchronize(handle);
    }

    @Override
    public void close() {
        if (own && !closed) {
            closed = true;
            CudaStreams.destroy(handle);
        }
    }
}
