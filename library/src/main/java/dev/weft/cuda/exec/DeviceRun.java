package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.fabric.FailureReport;
import dev.weft.plan.Shards;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import java.util.List;
import java.util.Optional;

/**
 * What an operator's calls do on this rank's GPU, from when A is in its place to the end of the
 * call. Used by the thread that calls the operator.
 */
public interface DeviceRun extends AutoCloseable {

    /** The place of A in a call of this parity and these rows. */
    DeviceMatrix input(int parity, Shards shards);

    /** A call of these rows is about to be queued; wrong operands are refused here. */
    void prepare(Shards shards);

    /** The next calls, behind what is on {@code stream} by now, have these rows. */
    void setRows(Shards shards, GpuStream stream);

    /** Tells what a call of the rows that are set waits for. */
    default void expect(int call, CallEvents events) {}

    /**
     * Why calls cannot be captured into a graph, and what would be right; null if they can. Only
     * what is queued on this rank's GPU can be.
     */
    String obstacleToCapture();

    /**
     * Queues, before all else of a call, what makes it the same in every launch of a graph: words
     * that it waits for begin with what they hold before the call.
     */
    void capture(int call, GpuStream stream);

    /** Whether peers may still read the results of the call before when a call starts. */
    boolean sharesResults();

    /** Whether peers may still read what a call of this view has left in this rank's memory. */
    boolean isReadAfter(View view);

    /**
     * Queues a call, or a part of it, on {@code stream} and on streams that it joins. Every rank
     * has announced the call.
     *
     * @param events told where the first part ends if gather or sums, and products, come one after
     *     the other
     */
    void run(int call, View view, GpuStream stream, CallEvents events);

    /**
     * What the latest call did on the GPU, which has ended. Null if only its begin and end are
     * known, as of calls of fewer rows.
     *
     * @param firstNs when the first part had ended, if the two come one after the other; else 0
     * @param seenNs when the host saw its end
     */
    Timeline timeline(int call, View view, CallEvents events, long firstNs, long seenNs);

    /** What threads of the host did for the latest call, from {@code startNs} on. */
    List<Timeline.Track> tracks(long startNs);

    /** Thread blocks of the product's grid; 0 if this rank multiplies nothing. */
    int blocks();

    /** Copies that a call of this rank issues. */
    int copies();

    /** What was sent in a call that is the latest, for an error; none before it begins. */
    List<FailureReport.Sent> sent(int call);

    /** The result number {@code index}. */
    DeviceMatrix product(int index);

    /** Gathered A of the latest call that gathered, if it is kept. */
    default Optional<DeviceMatrix> gathered() {
        return Optional.empty();
    }

    /** Frees all of these. */
    static void closeAll(List<? extends AutoCloseable> parts) {
        for (AutoCloseable part : parts) {
            try {
                part.close();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }
    }

    /** Frees all but what peers may read. */
    @Override
    void close();
}
