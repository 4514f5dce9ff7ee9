package dev.weft.cuda.sums;

import dev.weft.cuda.GpuStream;
import dev.weft.cuda.sums.SumCopyList.Move;
import dev.weft.fabric.FailureReport;
import dev.weft.op.Timeline;
import java.util.List;

/**
 * The pinned host memory that a rank's GPU copies sums from and to, and what is at its other end.
 * Used by the thread that calls the operator.
 */
public interface SumExchange extends AutoCloseable {

    /** Whether sums come while the call runs: until they do, their copies cannot be queued. */
    boolean isStaged();

    /** A call's copies will be queued from now on. */
    default void begin(int call) {}

    /** Returns when the host memory that a copy to this rank reads has been written. */
    default void awaitArrival(Move move, int call) {}

    /** The address of what a copy to this rank reads. */
    long incoming(Move move, int call);

    /** The address that a copy from this rank writes to. */
    long outgoing(Move move, int call);

    /** Bytes from one row to the next of what a copy to this rank reads. */
    long incomingPitchBytes(Move move);

    /** Likewise of what a copy from this rank writes to. */
    long outgoingPitchBytes(Move move);

    /** Has {@code on} tell of the end of a copy from this rank, which it has just been given. */
    default void copiedOut(Move move, int call, GpuStream on) {}

    /** Returns when all that the call has copied out has been sent. */
    default void end() {}

    /** What was sent in the latest call, for an error. */
    default List<FailureReport.Sent> sent() {
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
