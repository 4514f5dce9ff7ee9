package dev.weft.cuda.exec;

import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.SumCopyList.Move;
import dev.weft.cuda.kernel.PinnedBuffer;
import dev.weft.exec.host.HostLanes;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.CudaStreams;
import dev.weft.op.Timeline;
import dev.weft.plan.Chunks;
import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * Peers that are ranks which this GPU does not reach, as on other hosts. A thread for each lane
 * sends sums from this rank's host memory to that of a peer, as on the CPU. Another thread tells
 * them of the sums that the GPU has copied out: behind each copy the stream writes the number of
 * the call to a word in host memory, which this thread polls.
 *
 * <p>Copies in are queued once their sums are there, so no stream ever waits for the network.
 * {@link #end} returns when everything is sent, so when a call has been started, no thread of this
 * rank reads or writes host memory for it, except for its copies in.
 */
public final class StagedSums implements SumExchange {

    private static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle();

    /** A wait shorter than this is spun through, a longer one leaves the core to others. */
    private static final long SPIN_NS = 2_000_000;

    private static final long PARK_NS = 50_000;

    private final Transport fabric;
    private final HostLanes lanes;
    private final long[] firstCols;
    private final long productNs;

    /** By copy in: the wait for its sums. */
    private final Awaited[] arrivals;

    /**
     * Copies out, in the order in which they are queued: the number of the step that makes each.
     */
    private final int[] makers;

    /** Steps whose sums are copied out: how many copies each has, and how many are to end yet. */
    private final List<Step> made = new ArrayList<>();

    private final int[] pieces;
    private final int[] left;

    /** By copy out: the latest call in which it ended; then the latest call that has begun. */
    private final PinnedBuffer words;

    private final CallFailure failure;
    private volatile boolean closing;

    /** Copies out of the call; written by the thread that calls the operator. */
    private volatile int queued;

    private int begun;

    /**
     * @param lanes between the ranks' host memories; closed with this
     * @param columns of each product; in host memory their rows are side by side
     * @param productNs the longest time that a call's product may take
     */
    public StagedSums(
            Transport fabric,
            HostLanes lanes,
            SumCopyList list,
            List<Long> columns,
            long productNs) {
        this.fabric = fabric;
        this.failure = new CallFailure(fabric);
        this.lanes = lanes;
        this.productNs = productNs;
        this.firstCols = new long[columns.size()];
        for (int i = 1; i < firstCols.length; i++) {
            firstCols[i] = firstCols[i - 1] + columns.get(i - 1);
        }
        this.arrivals =
                list.in().stream().map(move -> lanes.arrival(move.copy())).toArray(Awaited[]::new);
        this.makers =
                list.leaving()
                        .mapToInt(
                                move -> {
                                    if (!made.contains(move.maker())) {
                                        made.add(move.maker());
                                    }
                                    return made.indexOf(move.maker());
                                })
                        .toArray();
        this.pieces = new int[made.size()];
        this.left = new int[made.size()];
        for (int maker : makers) {
            pieces[maker]++;
        }
        this.words = PinnedBuffer.allocate(4L * (makers.length + 1));
        try {
            lanes.start(this::tellLanes, failure::failed);
        } catch (RuntimeException | Error e) {
            words.close();
            throw e;
        }
    }

    /** Lanes between memory for the sums of these plans. Collective. */
    public static HostLanes lanes(Transport fabric, List<StepPlan> plans, Chunks chunks) {
        List<StepPlan> single = plans.stream().map(StagedSums::single).toList();
        // A is on the devices alone.
        return new HostLanes(fabric, single, chunks, DType.FP32, null);
    }

    /** A rank starts a call once it has ended the one before, so one copy serves all calls. */
    private static StepPlan single(StepPlan plan) {
        List<Buffer> buffers =
                plan.buffers().stream()
                        .map(
                                one ->
                                        one.holdsSums()
                                                ? new Buffer(
                                                        one.name(),
                                                        one.kind(),
                                                        one.open(),
                                                        true,
                                                        one.rows(),
                                                        one.cols())
                                                : one)
                        .toList();
        return new StepPlan(plan.rank(), buffers, plan.workers());
    }

    @Override
    public boolean isStaged() {
        return true;
    }

    @Override
    public void begin(int call, GpuStream stream) {
        queued = 0;
        begun = call;
        CudaStreams.writeValue32(stream.handle(), words.address() + 4L * makers.length, call);
        lanes.begin(call);
    }

    /** On a thread of its own: tells lanes of chunks that are in host memory. */
    private void tellLanes() {
        int call = lanes.number();
        System.arraycopy(pieces, 0, left, 0, pieces.length);
        // What the caller has queued before may take long.
        if (!awaitWord(makers.length, call)) {
            return;
        }
        for (int i = 0; i < makers.length; i++) {
            if (!awaitWord(i, call)) {
                return;
            }
            if (--left[makers[i]] == 0) {
                lanes.done(made.get(makers[i]));
            }
        }
    }

    /** Whether the device has written the word; otherwise the call has failed. */
    private boolean awaitWord(int word, int call) {
        long startNs = System.nanoTime();
        // Acquire: pairs with the stream's write, which comes after the copy.
        while ((int) WORD.getAcquire(words.segment(), 4L * word) != call) {
            if (closing || failure.hasFailed()) {
                return false;
            }
            long now = System.nanoTime();
            if (now - startNs < SPIN_NS) {
                Thread.onSpinWait();
                continue;
            }
            // A device at work is no stall: with what was queued before the call, or, for as long
            // as a product can take, with what a queued copy waits for.
            if (word == makers.length || word < queued && now - startNs < productNs) {
                fabric.worked();
            }
            LockSupport.parkNanos(PARK_NS);
        }
        return true;
    }

    @Override
    public void awaitArrival(Move move, int call) {
        try {
            lanes.await(move.copy().signal(), arrivals[move.word()]);
        } catch (RuntimeException e) {
            failure.failed(e);
            // Their waits have ended with the fabric: an error tells what they have sent.
            lanes.await();
            throw failure.cause();
        }
    }

    @Override
    public Place incoming(Move move, int call) {
        return place(move, call);
    }

    @Override
    public Place outgoing(Move move, int call) {
        return place(move, call);
    }

    private Place place(Move move, int call) {
        Matrix sums = lanes.matrix(move.part().buffer(), call);
        long at = sums.offset(move.part().firstRow(), firstCols[move.product()] + move.col());
        return new Place(sums.data().address() + at, sums.rowPitch() * sums.dtype().bytes());
    }

    @Override
    public void copiedOut(int call, GpuStream on) {
        int copy = queued;
        CudaStreams.writeValue32(on.handle(), words.address() + 4L * copy, call);
        queued = copy + 1;
    }

    @Override
    public void end() {
        lanes.await();
        failure.check();
    }

    @Override
    public List<FailureReport.Sent> sent(int call) {
        return begun == call ? lanes.sent() : List.of();
    }

    @Override
    public List<Timeline.Track> tracks(long startNs) {
        return lanes.tracks(startNs);
    }

    @Override
    public void close() {
        closing = true;
        lanes.close();
        words.close();
    }
}
