package dev.weft.cuda.kernel;

import dev.weft.cuda.GpuStream;
import dev.weft.fabric.Fabric;
import dev.weft.ffi.CudaStreams;
import java.util.concurrent.locks.LockSupport;

/**
 * A place in a stream that other streams and the host wait for. Any thread with a bound GPU may
 * ask; one at a time records.
 */
public final class DeviceEvent implements AutoCloseable {

    /** A wait shorter than this is spun through, a longer one leaves the core to others. */
    private static final long SPIN_NS = 2_000_000;

    private static final long PARK_NS = 50_000;
    private static final long HEARTBEAT_NS = 50_000_000;

    private final long handle;

    /** One that tells no time, which is cheaper. */
    public DeviceEvent() {
        this(false);
    }

    private DeviceEvent(boolean timed) {
        this.handle = CudaStreams.createEvent(timed, false);
    }

    /** One for {@link #nsSince}. */
    public static DeviceEvent timed() {
        return new DeviceEvent(true);
    }

    public void record(GpuStream stream) {
        CudaStreams.record(handle, stream.handle());
    }

    /** What is queued on {@code stream} from now on comes after the latest record. */
    public void join(GpuStream stream) {
        CudaStreams.waitEvent(stream.handle(), handle);
    }

    /** Whether the work before the latest record is done; true if nothing was recorded yet. */
    public boolean isDone() {
        return CudaStreams.queryEvent(handle);
    }

    /**
     * Waits for {@link #isDone}.
     *
     * @param forNs how long at most
     * @param heartbeat tells the peers that this rank lives; run now and then while it waits
     */
    public boolean isDoneWithin(long forNs, Runnable heartbeat) {
        long start = System.nanoTime();
        long beatNs = start;
        while (!isDone()) {
            long now = System.nanoTime();
            if (now - start > forNs) {
                return false;
            }
            if (now - beatNs > HEARTBEAT_NS) {
                beatNs = now;
                heartbeat.run();
            }
            if (now - start < SPIN_NS) {
                Thread.onSpinWait();
            } else {
                LockSupport.parkNanos(PARK_NS);
            }
        }
        return true;
    }

    /** Waits without a bound of its own, so all that is queued before must have one. */
    public void await(Fabric group) {
        isDoneWithin(Long.MAX_VALUE, group::worked);
    }

    /** The time from another event to this one; both are timed and done. */
    public long nsSince(DeviceEvent begin) {
        return Math.round(1e6 * CudaStreams.elapsedMs(begin.handle, handle));
    }

    @Override
    public void close() {
        CudaStreams.destroyEvent(handle);
    }
}
