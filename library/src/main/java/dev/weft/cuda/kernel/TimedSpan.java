package dev.weft.cuda.kernel;

import dev.weft.cuda.GpuStream;

/** Begin and end, on the device, of something that every call does. One thread at a time. */
public final class TimedSpan implements AutoCloseable {

    private final DeviceEvent begin = DeviceEvent.timed();
    private final DeviceEvent end = DeviceEvent.timed();
    private int call;

    public void begin(int ofCall, GpuStream on) {
        call = ofCall;
        begin.record(on);
    }

    public void end(GpuStream on) {
        end.record(on);
    }

    /** Whether it was last done for this call. */
    public boolean isOf(int ofCall) {
        return call == ofCall;
    }

    public long beginNs(DeviceEvent since) {
        return begin.nsSince(since);
    }

    public long endNs(DeviceEvent since) {
        return end.nsSince(since);
    }

    @Override
    public void close() {
        begin.close();
        end.close();
    }
}
