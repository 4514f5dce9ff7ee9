package dev.weft.cuda.exec;

import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceEvent;
import dev.weft.fabric.FailureReport;
import dev.weft.plan.Shards;
import dev.weft.trace.Timeline;
import java.util.List;

/**
 * What brings the peers' rows to this GPU, and this rank's rows to them, in one call after the
 * other. Used by the thread that calls the operator.
 */
public interface Copies extends AutoCloseable {

    /** Copies that a call of this rank issues. */
    int count();

    /** The rows of the next calls. */
    void setRows(Shards shards);

    /**
     * Starts a call's copies: those that can be queued at once are. The call before the last, which
     * used the same buffer, has been awaited.
     *
     * @param stream comes here once this rank's rows are in its buffer
     */
    void begin(int call, GpuStream stream);

    /** Returns when all of the call's copies are queued. */
    void issueRest(int call);

    /** As {@link #begin}, as far as it must go before {@link #awaitArrival} is called. */
    void beginForArrivals(int call, GpuStream stream);

    /** {@code stream} continues when all copies of the call have ended. They must be queued. */
    void join(GpuStream stream);

    /**
     * As {@link #join}, behind a product that waits for all rows itself: it has seen their flags,
     * so their copies need not be waited for again.
     */
    default void endBehindProduct(GpuStream stream) {
        join(stream);
    }

    /**
     * Lets {@code stream} wait for all that peers push to this rank, where no product does. Rows
     * that come in no other way than by this rank's own copies are there after {@link #join}.
     */
    default void awaitPushed(int call, GpuStream stream) {}

    /** Lets {@code stream} wait for the rows of a flag, by an event that is recorded. */
    void awaitArrival(int flag, int call, GpuStream stream);

    /** What each lane has been given of a call's copies, for an error; none before they begin. */
    List<FailureReport.Sent> sent(int call);

    /** When this rank's copies of the latest call had ended, since its begin; 0 if unknown. */
    default long copiedNs(DeviceEvent begin) {
        return 0;
    }

    /** Whether threads of the host report what they move: see {@link #tracks}. */
    default boolean areTracked() {
        return false;
    }

    /** What threads of the host did for the latest call, from {@code startNs} on. */
    default List<Timeline.Track> tracks(long startNs) {
        return List.of();
    }

    @Override
    void close();

    /** All of a call's copies. */
    default void issue(int call, GpuStream stream) {
        begin(call, stream);
        issueRest(call);
    }
}
