package dev.weft.cuda.exec;

import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.PinnedBuffer;
import dev.weft.exec.host.HostLanes;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.CudaStreams;
import dev.weft.plan.step.Step;
import dev.weft.trace.Timeline;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntConsumer;

/**
 * The host memory between a GPU and ranks which it does not reach, as on other hosts. A thread for
 * each lane sends from this rank's host memory to that of a peer, as on the CPU. Another thread
 * tells them of what the GPU has copied out: behind each copy the stream writes the number of the
 * call to a word in host memory, which this thread polls.
 *
 * <p>Copies in are queued once their rows are there, so no stream ever waits for the network.
 * {@link #end} returns when everything is sent, so when a call has been started, no thread of this
 * rank reads or writes host memory for it, except for its copies in. Used by the thread that calls
 * the operator.
 */
public final class HostStaging implements AutoCloseable {

    private static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle();

    /** A wait shorter than this is spun through, a longer one leaves the core to others. */
    private static final long SPIN_NS = 2_000_000;

    private static final long PARK_NS = 50_000;

    /** How often a long wait looks whether the peers still run. */
    private static final long CHECK_NS = 200_000_000;

    private final Transport fabric;
    private final HostLanes lanes;
    private final int copies;
    private final long enterNs;
    private final long productNs;
    private final IntConsumer copied;

    /** By copy out: the latest call in which it ended; then the latest call that has begun. */
    private final PinnedBuffer words;

    /** The first failure of any thread: the cause of the others. */
    private final AtomicReference<Throwable> failure = new AtomicReference<>();

    private volatile boolean closing;

    /** Copies out of the call; written by the thread that calls the operator. */
    private volatile int queued;

    private int begun;

    /**
     * @param lanes between the ranks' host memories; closed with this
     * @param copies out of a call
     * @param enterNs how long this rank counts as alive while a call waits for its turn
     * @param productNs likewise while a copy out waits for a product
     * @param copied told of each copy that has ended, in their order, on a thread of its own
     */
    public HostStaging(
            Transport fabric,
            HostLanes lanes,
            int copies,
            long enterNs,
            long productNs,
            IntConsumer copied) {
        this.fabric = fabric;
        this.lanes = lanes;
        this.copies = copies;
        this.enterNs = enterNs;
        this.productNs = productNs;
        this.copied = copied;
        this.words = PinnedBuffer.allocate(4L * (copies + 1));
        try {
            lanes.start(this::awaitCopies, this::failed);
        } catch (RuntimeException | Error e) {
            words.close();
            throw e;
        }
    }

    /** Any thread. Ends the waits of all others. */
    private void failed(Throwable e) {
        if (failure.compareAndSet(null, e)) {
            fabric.fail(e);
        }
    }

    private RuntimeException cause() {
        Throwable cause = failure.get();
        return cause instanceof RuntimeException e ? e : new IllegalStateException(cause);
    }

    /** A call's copies will be queued from now on, behind what is on {@code stream} by now. */
    public void begin(int call, GpuStream stream) {
        queued = 0;
        begun = call;
        CudaStreams.writeValue32(stream.handle(), words.address() + 4L * copies, call);
        lanes.begin(call);
    }

    /** Queues, behind a copy out, the signal that it has ended. */
    public void copiedOut(int call, GpuStream on) {
        int copy = queued;
        CudaStreams.writeValue32(on.handle(), words.address() + 4L * copy, call);
        queued = copy + 1;
    }

    /** On a thread of its own: tells of what has come to host memory. */
    private void awaitCopies() {
        int call = lanes.number();
        // What the caller has queued before may take long.
        boolean there = awaitWord(copies, call);
        for (int i = 0; there && i < copies; i++) {
            there = awaitWord(i, call);
            if (there) {
                copied.accept(i);
            }
        }
    }

    /** Whether the device has written the word; otherwise the call has failed. */
    private boolean awaitWord(int word, int call) {
        long startNs = System.nanoTime();
        long checkedNs = startNs;
        // Acquire: pairs with the stream's write, which comes after the copy.
        while ((int) WORD.getAcquire(words.segment(), 4L * word) != call) {
            if (closing || failure.get() != null) {
                return false;
            }
            long now = System.nanoTime();
            if (now - startNs < SPIN_NS) {
                Thread.onSpinWait();
                continue;
            }
            // A device at work is no stall: with what was queued before the call, or with what a
            // queued copy waits for. One that gets nothing done must not pass for one that does.
            long workNs = word == copies ? enterNs : word < queued ? productNs : 0;
            if (now - startNs < workNs) {
                fabric.worked();
            }
            if (now - checkedNs > CHECK_NS) {
                // A device that has failed writes nothing. The peers that wait for its rows then
                // stall, and that ends this wait.
                fabric.checkPeers();
                checkedNs = now;
            }
            LockSupport.parkNanos(PARK_NS);
        }
        return true;
    }

    /** Returns when the host memory that a copy to this rank reads has been written. */
    public void awaitArrival(Step.Copy copy, Awaited what) {
        try {
            lanes.await(copy.signal(), what);
        } catch (RuntimeException e) {
            failed(e);
            throw cause();
        }
    }

    /** Returns when all that the call has copied out has been sent. */
    public void end() {
        lanes.await();
        if (failure.get() != null) {
            throw cause();
        }
    }

    /** What was sent in a call that is the latest, for an error; none before it begins. */
    public List<FailureReport.Sent> sent(int call) {
        return begun == call ? lanes.sent() : List.of();
    }

    /** What threads of the host did for the latest call, from {@code startNs} on. */
    public List<Timeline.Track> tracks(long startNs) {
        return lanes.tracks(startNs);
    }

    /** Nothing that is queued reads or writes the memory any more. */
    @Override
    public void close() {
        closing = true;
        lanes.close();
        words.close();
    }
}
