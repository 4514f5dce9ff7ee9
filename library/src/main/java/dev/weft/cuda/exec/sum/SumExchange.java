package dev.weft.cuda.exec.sum;

import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.sum.SumCopyList.Move;
import dev.weft.fabric.FailureReport;
import dev.weft.plan.Shards;
import dev.weft.trace.Timeline;
import java.util.List;

/**
 * The pinned host memory that a rank's GPU copies sums from and to, and what is at its other end.
 * Used by the thread that calls the operator.
 */
public interface SumExchange extends AutoCloseable {

    /** Whether sums come while the call runs: until they do, their copies cannot be queued. */
    boolean isStaged();

    /**
     * The first row of a rectangle in host memory.
     *
     * @param pitchBytes from one row to the next
     */
    record Place(long address, long pitchBytes) {}

    /** A call's copies will be queued from now on, behind what is on {@code stream} by now. */
    default void begin(int call, GpuStream stream) {}

    /** Returns when the host memory that a copy to this rank reads has been written. */
    default void awaitArrival(Move move, int call) {}

    /** The rows of the next calls. */
    default void setRows(Shards shards) {}

    /**
     * What a copy to this rank reads.
     *
     * @param row of C that is its first, among the rows of the call
     */
    Place incoming(Move move, int call, long row);

    /** What a copy from this rank writes to; likewise. */
    Place outgoing(Move move, int call, long row);

    /** Queues, behind a copy from this rank, the signal that it has ended. */
    default void copiedOut(int call, GpuStream on) {}

    /** Returns when all that the call has copied out has been sent. */
    default void end() {}

    /** What was sent in a call that is the latest, for an error; none before it begins. */
    default List<FailureReport.Sent> sent(int call) {
        return List.of();
    }

    /** What threads of the host did for the latest call, from {@code startNs} on. */
    default List<Timeline.Track> tracks(long startNs) {
        return List.of();
    }

    /** Nothing that is queued reads or writes the memory any more. */
    @Override
    void close();
}
