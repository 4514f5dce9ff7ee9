package dev.weft.cuda.exec;

import dev.weft.cuda.GpuStream;
import dev.weft.op.Timeline.Span;

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

    /** Notes the end alone: an event costs its stream a microsecond. */
    public void endOnly(int ofCall, GpuStream on) {
        call = ofCall;
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

    /** The same span at another time. */
    public static Span at(Span span, long startNs, long endNs) {
        return new Span(
                span.kind(),
                span.source(),
                span.peer(),
                span.to(),
                span.chunk(),
                span.firstRow(),
                span.rows(),
                span.bytes(),
                startNs,
                endNs);
    }

    @Override
    public void close() {
        begin.close();
        end.close();
    }
}
