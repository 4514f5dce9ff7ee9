package dev.weft.cuda.op;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CallEvents;
import dev.weft.cuda.exec.CudaBuffers;
import dev.weft.cuda.exec.DevicePeers;
import dev.weft.cuda.exec.HostSteps;
import dev.weft.cuda.exec.Peers;
import dev.weft.exec.host.CallReport;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator;
import dev.weft.op.Result;
import dev.weft.plan.RankPlan;
import dev.weft.plan.step.StepPlan;
import java.util.List;
import java.util.Map;

/**
 * What operators on GPUs have in common: a call queues its work on the caller's stream and returns,
 * the host threads of ranks on GPUs keep in step, and errors report the state of the call.
 */
abstract sealed class CudaOperator extends Operator<DeviceMatrix>
        permits CudaAllGatherMatmul, CudaMatmulReduce {

    final Gpu gpu;
    final CudaBuffers buffers;
    final Peers peers;

    /** Null unless the peers are ranks that reach each other's GPUs. */
    final DevicePeers linked;

    final HostSteps steps;
    final CallEvents events;
    private final Transport fabric;
    private final CallReport report;
    private final GpuStream ownStream = GpuStream.create();

    /**
     * Takes ownership of all arguments, and closes them.
     *
     * @param fabric null if the peers are host memory
     * @param mostUnderWay calls that may have been started and not awaited
     */
    CudaOperator(
            Gpu gpu,
            Transport fabric,
            List<RankPlan> plans,
            RankPlan plan,
            List<StepPlan> stepPlans,
            CudaBuffers buffers,
            Peers peers,
            CallEvents events,
            int mostUnderWay) {
        super(plans, plan, stepPlans, peers.worldRank(plan.rank()), mostUnderWay);
        this.gpu = gpu;
        this.fabric = fabric;
        this.buffers = buffers;
        this.peers = peers;
        this.linked = peers instanceof DevicePeers devices ? devices : null;
        this.steps = peers.steps();
        this.events = events;
        this.report = new CallReport(plan.rank(), plan.ranks(), peers::worldRank, new LatestCall());
    }

    @Override
    public final void replaceB(int index, DeviceMatrix b) {
        throw new UnsupportedOperationException(
                "B is read on the GPU where it was given: write the new one there, between two calls"
                        + " (a B of host memory, or of rows that are not aligned to 16 bytes, is a copy:"
                        + " prepare anew)");
    }

    /** The place of A in calls of this parity. */
    abstract DeviceMatrix place(int parity);

    /** Refuses an A of another shape or type. */
    abstract void checkFits(DeviceMatrix shard);

    /** A call is about to be queued; wrong operands are refused here. */
    abstract void beginCall();

    /** Whether peers may still read the previous results when a call starts. */
    abstract boolean sharesResults();

    /** Whether peers may still read what the call before has left in this rank's memory. */
    abstract boolean isReadAfter(int call);

    /** Queues a call whose A is in its place, and which every rank has announced. */
    abstract void run(int call, View view, GpuStream stream);

    /** Keeps the times of a call that has ended. */
    abstract void ended(int call);

    abstract List<FailureReport.Sent> sent();

    abstract void closeParts();

    /** What peers may have read: closed once no peer does. */
    abstract void closeMemory();

    /** What an error reports about the latest call. */
    private final class LatestCall implements CallReport.Call {

        @Override
        public String operator() {
            return steps == null ? "" : steps.name();
        }

        @Override
        public int number() {
            return started();
        }

        @Override
        public boolean moves() {
            return started() > 0 && view(started()) != View.COMPUTE_ONLY;
        }

        @Override
        public boolean isStarted(int rank, int number) {
            return steps == null || steps.isAnnounced(rank, number);
        }

        @Override
        public Map<Integer, Map<Integer, Boolean>> arrivals() {
            return events.arrivals(started());
        }

        @Override
        public List<FailureReport.Sent> sent() {
            return CudaOperator.this.sent();
        }
    }

    @Override
    public final long reachableBytes() {
        return buffers.reachableBytes();
    }

    @Override
    public final DeviceMatrix nextShard() {
        checkUsable();
        gpu.bind();
        if (linked != null) {
            try {
                linked.awaitUnread(started() - 1, sharesResults());
            } catch (RuntimeException e) {
                failed(e);
                throw withReport(e);
            }
        }
        return place((started() + 1) & 1);
    }

    /** Queues a call on a stream of the operator's own: see the other {@code start}. */
    @Override
    public final PendingCall<DeviceMatrix> start(DeviceMatrix shard) {
        return start(shard, ownStream, View.PIPELINED);
    }

    @Override
    public final Result<DeviceMatrix> callInPlace(View view) {
        return start(nextShard(), ownStream, view).await();
    }

    /**
     * Queues a call behind what is on {@code stream}, which continues when the call has ended.
     * Collective: it returns once every rank has started the call; if the ranks are on several
     * hosts, once the peers' rows have arrived in this one's memory and its own have left it.
     *
     * @param shard this rank's A; {@link #nextShard} is read in place, everything else is copied
     */
    public final PendingCall<DeviceMatrix> start(DeviceMatrix shard, GpuStream stream, View view) {
        checkUsable();
        checkFits(shard);
        boolean measures = view != View.PIPELINED || view(started()) != View.PIPELINED;
        if (awaited() < started() && measures) {
            throw new IllegalStateException(
                    "a call is under way, and one of the two only measures: await it first");
        }
        beginCall();
        gpu.bind();
        try {
            queue(shard, stream, view);
            events.end(started(), stream);
        } catch (RuntimeException e) {
            markEnd(stream, e);
            failed(e);
            throw withReport(e);
        }
        return pending();
    }

    /** Marks the end of what a failed call has queued: closing waits for it. */
    private void markEnd(GpuStream stream, RuntimeException cause) {
        try {
            events.end(started(), stream);
        } catch (RuntimeException e) {
            cause.addSuppressed(e);
        }
    }

    private void queue(DeviceMatrix shard, GpuStream stream, View view) {
        int call = started() + 1;
        // Behind the call before, whichever stream that is on.
        if (awaited() < call - 1) {
            events.endOf(call - 1).join(stream);
        }
        events.begin(call, stream);
        if (linked != null) {
            linked.awaitReuse(call, isReadAfter(call - 1), stream);
        }
        DeviceMatrix place = place(call & 1);
        if (shard.address() != place.address() && shard.rows() > 0) {
            place.copyFrom(shard, stream);
        }
        begin(view);
        if (linked != null) {
            linked.rowsAreThere(call, stream);
        }
        if (steps != null) {
            steps.announce(call);
        }
        run(call, view, stream);
        if (linked != null) {
            linked.ended(call, stream);
        }
        if (steps != null) {
            steps.queued(call);
        }
    }

    @Override
    protected final boolean isDone() {
        gpu.bind();
        return events.endOf(awaited() + 1).isDone();
    }

    @Override
    protected final void awaitEnd(int call) {
        gpu.bind();
        if (steps != null) {
            steps.awaitQueued(call);
        }
        events.await(call, started());
        ended(call);
    }

    @Override
    protected final void failPeers(Throwable cause) {
        report.ended(cause);
        if (fabric != null) {
            fabric.fail(cause);
        }
    }

    @Override
    protected final RuntimeException withReport(RuntimeException cause) {
        if (cause instanceof FabricException e) {
            report.attachTo(e);
        }
        return cause;
    }

    /**
     * Waits for calls under way and frees everything. Collective if ranks share memory: if a peer
     * does not come, memory that it may still read is kept until the process ends.
     */
    @Override
    public final void close() {
        if (!closeOnce()) {
            return;
        }
        gpu.bind();
        events.drain(started(), hasFailed());
        boolean unread = peers.awaitRelease(hasFailed());
        closeParts();
        events.close();
        ownStream.close();
        if (unread) {
            peers.close();
            buffers.close();
            closeMemory();
        }
    }
}
