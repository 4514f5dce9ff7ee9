package dev.weft.cuda.exec;

import dev.weft.ffi.CudaStreams;
import java.util.concurrent.locks.LockSupport;

/** The host's wait for an event on the device. Any thread with a bound GPU may call. */
public final class EventWait {

    /** A wait shorter than this is spun through, a longer one leaves the core to others. */
    private static final long SPIN_NS = 2_000_000;

    private static final long PARK_NS = 50_000;
    private static final long HEARTBEAT_NS = 50_000_000;

    private EventWait() {}

    /**
     * @param forNs how long at most
     * @param heartbeat tells the peers that this rank lives; run now and then while it waits
     * @return whether the work before the event's latest record is done, as it is where there is
     *     none
     */
    public static boolean isDoneWithin(long event, long forNs, Runnable heartbeat) {
        long start = System.nanoTime();
        long told = start;
        while (!CudaStreams.queryEvent(event)) {
            long now = System.nanoTime();
            if (now - start > forNs) {
                return false;
            }
            if (now - told > HEARTBEAT_NS) {
                told = now;
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
}
