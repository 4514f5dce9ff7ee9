package dev.weft.cuda.exec;

import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.SumCopyList.Move;
import dev.weft.cuda.kernel.PinnedBuffer;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.CudaStreams;
import dev.weft.op.Operator.View;
import dev.weft.op.Timeline;
import dev.weft.op.exec.CallState;
import dev.weft.op.exec.LaneWorker;
import dev.weft.op.exec.Releases;
import dev.weft.op.exec.SumMemory;
import dev.weft.op.exec.Team;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.Reduction;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

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
    private final SumMemory memory;
    private final CallState state;
    private final int rank;
    private final long[] firstCols;
    private final long productNs;

    /** Copies out, in the order in which they are queued. */
    private final Move[] copies;

    /** By tag: how many of them it has; and how many of those are still to end in this call. */
    private final int[] pieces;

    private final int[] left;

    /** By copy out: the latest call in which it ended; then the latest call that has begun. */
    private final PinnedBuffer words;

    private final List<LaneWorker> lanes = new ArrayList<>();
    private final Team team;
    private final CallFailure failure;
    private volatile boolean closing;

    /** Copies out of the call; written by the thread that calls the operator. */
    private volatile int queued;

    /**
     * @param columns of each product; in host memory their rows are side by side
     * @param productNs the longest time that a call's product may take
     */
    public StagedSums(
            Transport fabric,
            SumMemory memory,
            RankPlan plan,
            SumCopyList list,
            List<Long> columns,
            long productNs) {
        this.fabric = fabric;
        this.failure = new CallFailure(fabric);
        this.memory = memory;
        this.state = new CallState(plan.programs());
        this.rank = plan.rank();
        this.productNs = productNs;
        this.firstCols = new long[columns.size()];
        for (int i = 1; i < firstCols.length; i++) {
            firstCols[i] = firstCols[i - 1] + columns.get(i - 1);
        }
        this.copies = Stream.concat(list.out().stream(), list.late().stream()).toArray(Move[]::new);
        this.pieces = new int[plan.chunks().total()];
        this.left = new int[pieces.length];
        for (Move copy : copies) {
            pieces[copy.tag()]++;
        }
        // Every chunk has its own place, so no buffer is ever released.
        Releases none = new Releases(plan, fabric, null, 1);
        this.words = PinnedBuffer.allocate(4L * (copies.length + 1));
        try {
            for (Lane lane : plan.lanes()) {
                lanes.add(new LaneWorker(lane, plan, fabric, memory, state, none, -1));
            }
            List<Runnable> tasks = new ArrayList<>(lanes);
            tasks.add(new Stage());
            this.team =
                    new Team(
                            "weft-" + fabric.worldRank(rank),
                            tasks.toArray(Runnable[]::new),
                            task -> {},
                            failure::failed);
        } catch (RuntimeException | Error e) {
            lanes.forEach(LaneWorker::close);
            words.close();
            throw e;
        }
    }

    /** Tells lanes of chunks that are in host memory. */
    private final class Stage implements Runnable {

        @Override
        public void run() {
            tellLanes();
        }

        @Override
        public String toString() {
            return "stage";
        }
    }

    @Override
    public boolean isStaged() {
        return true;
    }

    @Override
    public void begin(int call, GpuStream stream) {
        queued = 0;
        CudaStreams.writeValue32(stream.handle(), words.address() + 4L * copies.length, call);
        state.call = call;
        state.view = View.PIPELINED;
        team.start();
    }

    private void tellLanes() {
        int call = state.call;
        System.arraycopy(pieces, 0, left, 0, pieces.length);
        // What the caller has queued before may take long.
        if (!awaitWord(copies.length, call)) {
            return;
        }
        for (int i = 0; i < copies.length; i++) {
            if (!awaitWord(i, call)) {
                return;
            }
            int tag = copies[i].tag();
            if (--left[tag] == 0) {
                // Release: pairs with the acquire of the lane that sends the chunk, which waits
                // for one of the two.
                fabric.signal(memory.region(), rank, memory.multipliedAt(tag), call);
                fabric.signal(memory.region(), rank, memory.summedAt(tag), call);
                fabric.worked();
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
            if (word == copies.length || word < queued && now - startNs < productNs) {
                fabric.worked();
            }
            LockSupport.parkNanos(PARK_NS);
        }
        return true;
    }

    @Override
    public void awaitArrival(Move move, int call) {
        long flag = memory.flagAt(move.slot(), move.tag());
        try {
            fabric.await(
                    memory.region(), rank, flag, call, memory.arrival(move.slot(), move.tag()));
        } catch (RuntimeException e) {
            failure.failed(e);
            // Their waits have ended with the fabric: an error tells what they have sent.
            team.await();
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

    /** Sums that are rounded before they are sent begin where fp32 ones would. */
    private Place place(Move move, int call) {
        Matrix sums = memory.sums(move.slot(), call);
        DType type = move.fromSlot() == Reduction.WHOLE ? DType.FP32 : memory.wire();
        long row = sums.offset(move.row() - memory.firstRow(move.slot()), 0);
        long col = (firstCols[move.product()] + move.col()) * type.bytes();
        return new Place(sums.data().address() + row + col, sums.rowPitch() * sums.dtype().bytes());
    }

    @Override
    public void copiedOut(int call, GpuStream on) {
        int copy = queued;
        CudaStreams.writeValue32(on.handle(), words.address() + 4L * copy, call);
        queued = copy + 1;
    }

    @Override
    public void end() {
        team.await();
        failure.check();
    }

    @Override
    public List<FailureReport.Sent> sent(int call) {
        if (state.call != call) {
            return List.of();
        }
        return lanes.stream().map(LaneWorker::sent).toList();
    }

    @Override
    public List<Timeline.Track> tracks(long startNs) {
        return lanes.stream().map(lane -> lane.log().track(startNs)).toList();
    }

    @Override
    public void close() {
        closing = true;
        team.await();
        team.close();
        lanes.forEach(LaneWorker::close);
        words.close();
    }
}
