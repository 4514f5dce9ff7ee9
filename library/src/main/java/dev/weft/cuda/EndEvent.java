package dev.weft.cuda;

import dev.weft.fabric.Fabric;
import dev.weft.ffi.CudaStreams;
import java.util.concurrent.locks.LockSupport;

/**
 * A place in a stream that other streams and the host wait for. The host's wait tells the peers
 * that this rank lives; it has no bound of its own, so all that is queued before must have one. One
 * thread at a time.
 */
final class EndEvent implements AutoCloseable {

    private static final long SPIN_NS = 2_000_000;
    private static final long PARK_NS = 50_000;
    private static final long HEARTBEAT_NS = 50_000_000;

    private final long event = CudaStreams.createEvent(false, false);

    void record(GpuStream stream) {
        CudaStreams.record(event, stream.handle());
    }

    /** What is queued on {@code stream} from now on comes after it. */
    void join(GpuStream stream) {
        CudaStreams.waitEvent(stream.handle(), event);
    }

    /** Returns once the work before the latest record is done, or at once where there is none. */
    void await(Fabric group) {
        long start = System.nanoTime();
        long heartbeat = start;
        while (!CudaStreams.queryEvent(event)) {
            long now = System.nanoTime();
            if (now - heartbeat > HEARTBEAT_NS) {
                heartbeat = now;
                group.worked();
            }
            if (now - start < SPIN_NS) {
                Thread.onSpinWait();
            } else {
                LockSupport.parkNanos(PARK_NS);
            }
        }
    }

    @Override
    public void close() {
        CudaStreams.destroyEvent(event);
    }
}
