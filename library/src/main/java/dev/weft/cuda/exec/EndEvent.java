package dev.weft.cuda.exec;

import dev.weft.cuda.GpuStream;
import dev.weft.fabric.Fabric;
import dev.weft.ffi.CudaStreams;

/**
 * A place in a stream that other streams and the host wait for. The host's wait tells the peers
 * that this rank lives; it has no bound of its own, so all that is queued before must have one. One
 * thread at a time.
 */
public final class EndEvent implements AutoCloseable {

    private final long event = CudaStreams.createEvent(false, false);

    public void record(GpuStream stream) {
        CudaStreams.record(event, stream.handle());
    }

    /** What is queued on {@code stream} from now on comes after it. */
    public void join(GpuStream stream) {
        CudaStreams.waitEvent(stream.handle(), event);
    }

    /** Returns once the work before the latest record is done, or at once where there is none. */
    public void await(Fabric group) {
        EventWait.isDoneWithin(event, Long.MAX_VALUE, group::worked);
    }

    @Override
    public void close() {
        CudaStreams.destroyEvent(event);
    }
}
