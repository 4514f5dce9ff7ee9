package dev.weft.cuda.op;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CallEvents;
import dev.weft.cuda.exec.CudaBuffers;
import dev.weft.cuda.exec.DevicePeers;
import dev.weft.cuda.exec.DeviceRun;
import dev.weft.cuda.exec.HostSteps;
import dev.weft.cuda.exec.Peers;
import dev.weft.exec.host.CallReport;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.CudaGraphs;
import dev.weft.op.Operator;
import dev.weft.op.Result;
import dev.weft.plan.Plan;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * What operators on GPUs have in common: a call queues its work on the caller's stream and returns,
 * the host threads of ranks on GPUs keep in step, and errors report the state of the call.
 */
public abstract sealed class CudaOperator extends Operator<DeviceMatrix>
        permits CudaAllGatherMatmul, CudaMatmulReduce {

    final Gpu gpu;
    final CudaBuffers buffers;
    final Peers peers;

    /** Null unless the peers are ranks that reach each other's GPUs. */
    final DevicePeers linked;

    private final HostSteps hostSteps;
    private final CallEvents events;
    private final DeviceRun run;

    /** Whether products come first, and sums over ranks after them; otherwise a gather is first. */
    private final boolean sums;

    private final Outcome outcome = new Outcome();

    /** What peers may have read, and what was used to prepare: closed last. */
    private final List<AutoCloseable> memory = new ArrayList<>();

    /** Those Bs that other operators may use, by number. */
    private final Map<Integer, CudaWeights> weights;

    private final Transport fabric;
    private final CallReport report;

    /** Whether products wait for all copies, or sums for all products. */
    private final boolean sequential;

    private final GpuStream ownStream = GpuStream.create();

    /** Of the latest calls of either parity. */
    private final Shards[] rows = new Shards[2];

    /** Of calls in graphs; null if there are none. */
    private Shards capturedRows;

    /** The number of the latest of them. */
    private int capturedCall;

    /** Of a call whose launch in a graph has failed; 0 if none has. */
    private int failedReplay;

    /**
     * Takes ownership of all arguments, and closes them.
     *
     * @param sums whether products are summed over ranks; otherwise rows are gathered for them
     * @param mostUnderWay calls that may have been started and not awaited
     */
    CudaOperator(
            CudaGroup group,
            Plan plan,
            CudaBuffers buffers,
            Peers peers,
            CallEvents events,
            DeviceRun run,
            boolean sums,
            int mostUnderWay) {
        super(plan, group.rank, peers.worldRank(group.rank), mostUnderWay);
        this.gpu = group.gpu;
        this.fabric = group.fabric;
        this.buffers = buffers;
        this.peers = peers;
        this.linked = peers instanceof DevicePeers devices ? devices : null;
        this.hostSteps = peers.steps();
        this.events = events;
        this.run = run;
        this.sums = sums;
        this.report =
                new CallReport(rank(), plan.steps().size(), peers::worldRank, new LatestCall());
        this.sequential =
                sums ? plan.algorithm() == Reduction.SEQUENTIAL : ownSteps().multipliesLast();
        this.weights = Map.copyOf(group.weights);
        weights.values().forEach(each -> each.usedBy(this));
    }

    @Override
    public final void replaceB(int index, DeviceMatrix b) {
        throw new UnsupportedOperationException(
                weights.containsKey(index)
                        ? "B number %d is weights that other operators may use: replace it by CudaWeights.replace"
                                .formatted(index)
                        : "B is read on the GPU where it was given: write the new one there, between two calls"
                                + " (a B of host memory, or of rows that are not aligned to 16 bytes, is a copy:"
                                + " give CudaWeights, which can be replaced, or prepare anew)");
    }

    /** Returns when no rank reads this one's Bs any more; refuses while a call is under way. */
    final void awaitBsUnread() {
        checkNotUnderWay();
        if (sums) {
            awaitUnread(started(), false);
        }
    }

    private void awaitUnread(int call, boolean results) {
        if (linked == null) {
            return;
        }
        try {
            linked.awaitUnread(call, results);
        } catch (RuntimeException e) {
            failed(e);
            throw withReport(e);
        }
    }

    /** Takes ownership of memory, and notes what auto chose this operator from. */
    final void adopt(List<? extends AutoCloseable> used, List<dev.weft.search.Candidate> all) {
        memory.addAll(used);
        chosenFrom(all);
    }

    /** Thread blocks of the product's grid; 0 if a library chooses, or nothing is multiplied. */
    @Override
    public final int computeWorkers() {
        return run.blocks();
    }

    /** Copies that a call of this rank issues. */
    public final int copiesPerCall() {
        return run.copies();
    }

    /**
     * The place of the result with B number {@code index}, for work that is queued behind a call
     * before it has ended; holds until the next call's product.
     */
    public final DeviceMatrix product(int index) {
        return run.product(index);
    }

    /** What an error reports about the latest call. */
    private final class LatestCall implements CallReport.Call {

        @Override
        public String operator() {
            return hostSteps == null ? "" : hostSteps.name();
        }

        @Override
        public int number() {
            return failedReplay > 0 ? failedReplay : started();
        }

        @Override
        public boolean moves() {
            return failedReplay > 0 || started() > 0 && view(started()) != View.COMPUTE_ONLY;
        }

        @Override
        public boolean isStarted(int rank, int number) {
            return hostSteps == null || hostSteps.isAnnounced(rank, number);
        }

        @Override
        public Map<Integer, Map<Integer, Boolean>> arrivals() {
            return events.arrivals(number());
        }

        @Override
        public List<FailureReport.Sent> sent() {
            return run.sent(number());
        }
    }

    @Override
    public final long reachableBytes() {
        return buffers.reachableBytes();
    }

    @Override
    public final DeviceMatrix nextShard(Shards shards) {
        checkRows(shards);
        checkUsable();
        gpu.bind();
        awaitUnread(started() - 1, run.sharesResults());
        return run.input((started() + 1) & 1, shards);
    }

    /** Queues a call on a stream of the operator's own: see the other {@code start}. */
    @Override
    public final PendingCall<DeviceMatrix> start(DeviceMatrix shard, Shards shards) {
        return start(shard, shards, ownStream, View.PIPELINED);
    }

    @Override
    public final Result<DeviceMatrix> callInPlace(View view, Shards shards) {
        return start(nextShard(shards), shards, ownStream, view).await();
    }

    /** Queues a call of all rows: see the other {@code start}. */
    public final PendingCall<DeviceMatrix> start(DeviceMatrix shard, GpuStream stream, View view) {
        return start(shard, mostRows(), stream, view);
    }

    /**
     * Queues a call behind what is on {@code stream}, which continues when the call has ended.
     * Collective: it returns once every rank has started the call; if the ranks are on several
     * hosts, once the peers' rows have arrived in this one's memory and its own have left it.
     *
     * <p>If the stream is being captured into a {@link GpuStream.Graph}, the call becomes part of
     * the graph, every launch of which is a call. It cannot be awaited: wait for the launch, and
     * then ask {@link #checkReplays}. From then on the operator takes only calls of these rows.
     *
     * @param shard this rank's A; {@link #nextShard} is read in place, everything else is copied
     * @param shards the rows of the call, as in {@link #call(Object, Shards)}
     */
    public final PendingCall<DeviceMatrix> start(
            DeviceMatrix shard, Shards shards, GpuStream stream, View view) {
        checkUsable();
        checkRows(shards);
        checkFits(shard, shards);
        boolean measures = view != View.PIPELINED || view(started()) != View.PIPELINED;
        if (awaited() < started() && measures) {
            throw new IllegalStateException(
                    "a call is under way, and one of the two only measures: await it first");
        }
        gpu.bind();
        boolean captures = CudaGraphs.isCapturing(stream.handle());
        if (!captures) {
            return queue(shard, shards, stream, view, false);
        }
        // Some of what follows is not captured, which only this mode allows.
        CudaGraphs.Mode mode = CudaGraphs.exchangeMode(CudaGraphs.Mode.RELAXED);
        try {
            return queue(shard, shards, stream, view, true);
        } finally {
            CudaGraphs.exchangeMode(mode);
        }
    }

    private PendingCall<DeviceMatrix> queue(
            DeviceMatrix shard, Shards shards, GpuStream stream, View view, boolean captures) {
        run.prepare(shards);
        checkCapture(shards, view, captures);
        events.setCaptured(captures);
        try {
            queueSteps(shard, shards, stream, view, captures);
            events.end(started(), stream);
            events.setCaptured(false);
        } catch (RuntimeException e) {
            markEnd(stream, e);
            failed(e);
            throw withReport(e);
        }
        if (captures) {
            capturedRows = shards;
            capturedCall = started();
            captured();
        }
        return pending();
    }

    /** What is captured must be able to run again as it is. */
    private void checkCapture(Shards shards, View view, boolean captures) {
        if (capturedRows != null && !shards.equals(capturedRows)) {
            throw new IllegalArgumentException(
                    "a call of shards %s of an operator with a call of shards %s in a graph: expected the same"
                            .formatted(shards, capturedRows));
        }
        if (!captures) {
            return;
        }
        checkNotUnderWay();
        if (view != View.PIPELINED) {
            throw new UnsupportedOperationException(
                    "a graph cannot have a call of view %s: expected %s"
                            .formatted(view, View.PIPELINED));
        }
        if (run.obstacleToCapture() != null) {
            throw new UnsupportedOperationException(
                    "a graph cannot have " + run.obstacleToCapture());
        }
        outcome.captureComes();
        // Not a part of the graph: the rows are those of other launches and calls, too.
        run.setRows(shards, ownStream);
        ownStream.synchronize();
    }

    /**
     * Throws what a call would have thrown, if a wait in a launch of a graph with a call of this
     * operator has timed out or met a broken signal; the launches have ended. Their results are
     * wrong then, and the operator has failed.
     */
    public final void checkReplays() {
        checkUsable();
        try {
            events.checkStall();
        } catch (RuntimeException e) {
            failedReplay = capturedCall;
            failed(e);
            throw withReport(e);
        }
    }

    private void checkFits(DeviceMatrix a, Shards shards) {
        DeviceMatrix place = run.input(0, shards);
        if (a.rows() != place.rows() || a.cols() != place.cols() || a.dtype() != place.dtype()) {
            throw new IllegalArgumentException(
                    "A of rank %d is %s: expected %s"
                            .formatted(peers.worldRank(rank()), a.describe(), place.describe()));
        }
        int parity = (started() + 1) & 1;
        long expected = run.input(parity, shards).address();
        if (a.address() != expected && buffers.contains(a.address(), parity) && a.rows() > 0) {
            throw new IllegalArgumentException(
                    "A of rank %d lies in the operator's memory, but not where the rows of this call go: expected nextShard(%s)"
                            .formatted(peers.worldRank(rank()), shards));
        }
    }

    /** Marks the end of what a failed call has queued: closing waits for it. */
    private void markEnd(GpuStream stream, RuntimeException cause) {
        try {
            events.end(started(), stream);
        } catch (RuntimeException e) {
            cause.addSuppressed(e);
        }
    }

    private void queueSteps(
            DeviceMatrix shard, Shards shards, GpuStream stream, View view, boolean captures) {
        int call = started() + 1;
        // Behind the call before, whichever stream that is on.
        if (awaited() < call - 1) {
            events.endOf(call - 1).join(stream);
        }
        events.begin(call, stream);
        if (linked != null) {
            linked.awaitReuse(call, run.isReadAfter(view(call - 1)), stream);
        }
        run.setRows(shards, stream);
        run.expect(call, events);
        if (captures) {
            run.capture(call, stream);
        }
        DeviceMatrix place = run.input(call & 1, shards);
        if (shard.address() != place.address() && shard.rows() > 0) {
            place.copyFrom(shard, stream);
        }
        begin(view);
        rows[call & 1] = shards;
        if (linked != null) {
            linked.rowsAreThere(call, stream);
        }
        if (hostSteps != null) {
            hostSteps.announce(call, shards);
        }
        run.run(call, view, stream, events);
        if (linked != null) {
            linked.ended(call, stream);
        }
        if (hostSteps != null) {
            hostSteps.queued(call);
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
        if (hostSteps != null) {
            hostSteps.awaitQueued(call);
        }
        events.await(call, started());
        outcome.ended(call);
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
        boolean drained = false;
        boolean unread = false;
        try {
            gpu.bind();
            events.drain(started(), hasFailed());
            drained = true;
            unread = peers.awaitRelease(hasFailed());
            run.close();
            events.close();
            ownStream.close();
            if (unread) {
                peers.close();
                buffers.close();
                DeviceRun.closeAll(memory);
            }
        } finally {
            boolean mayBeRead = !drained || !unread && sums && linked != null;
            weights.values().forEach(each -> each.leftBy(this, mayBeRead));
        }
    }

    @Override
    protected final Result<DeviceMatrix> result() {
        return outcome;
    }

    /** What a call gave; one for all calls. */
    private final class Outcome implements Result<DeviceMatrix> {

        private int call;
        private long endNs;
        private long elapsedNs;

        /** Gathered A, if a call has been captured since. */
        private Optional<DeviceMatrix> beforeCapture;

        /** Whether the gather, or the sums, and the products came one after the other. */
        private boolean inTurn;

        /** When the first of the two had ended; 0 if they overlap. */
        private long firstNs;

        private void ended(int awaited) {
            call = awaited;
            beforeCapture = null;
            endNs = System.nanoTime();
            elapsedNs = events.elapsedNs(call);
            inTurn = sequential && view(call) == View.PIPELINED;
            firstNs = inTurn ? events.firstNs(call) : 0;
        }

        private void captureComes() {
            beforeCapture = gathered();
        }

        @Override
        public DeviceMatrix product(int index) {
            return run.product(index);
        }

        @Override
        public Optional<DeviceMatrix> gathered() {
            return beforeCapture == null ? run.gathered() : beforeCapture;
        }

        @Override
        public long elapsedNs() {
            return elapsedNs;
        }

        /** What the gather took, or the sums after the product, if nothing overlaps; else 0. */
        @Override
        public long gatherNs() {
            return sums && inTurn ? elapsedNs - firstNs : firstNs;
        }

        /**
         * What was measured on the device, and what threads of the host did. If another call was
         * started behind this one, or a library multiplies, only the begin and the end are known
         * and, if nothing overlaps, the time in between.
         */
        @Override
        public Timeline timeline() {
            boolean latest = call == started();
            Timeline measured =
                    latest ? run.timeline(call, view(call), events, firstNs, endNs) : null;
            long startNs = measured == null ? endNs - elapsedNs : measured.startNs();
            List<Timeline.Track> tracks = new ArrayList<>();
            if (latest) {
                // A later call would have left its spans there instead.
                tracks.addAll(run.tracks(startNs));
            }
            tracks.addAll(measured == null ? estimated() : measured.tracks());
            return new Timeline(rank(), startNs, elapsedNs, tracks);
        }

        private List<Timeline.Track> estimated() {
            Shards shards = rows[call & 1];
            long all = sums ? run.product(0).rows() : shards.totalRows();
            long moved = sums ? all : all - shards.rows(rank());
            // The first part ends here, if nothing overlaps, and the second one begins.
            long untilNs = inTurn ? firstNs : elapsedNs;
            List<Timeline.Track> tracks = new ArrayList<>();
            if (run.copies() > 0) {
                long fromNs = sums ? firstNs : 0;
                long endNs = sums ? elapsedNs : untilNs;
                tracks.add(track("copies", Timeline.Kind.TRANSFER, moved, fromNs, endNs));
            }
            if (multiplies()) {
                long fromNs = sums ? 0 : firstNs;
                long endNs = sums ? untilNs : elapsedNs;
                tracks.add(track("compute", Timeline.Kind.COMPUTE, all, fromNs, endNs));
            }
            return tracks;
        }

        private boolean multiplies() {
            return ownSteps().multiplications().anyMatch(step -> step.into().cols() > 0);
        }

        private Timeline.Track track(
                String name, Timeline.Kind kind, long rows, long startNs, long finishNs) {
            int rank = rank();
            return new Timeline.Track(
                    name,
                    List.of(Timeline.Span.local(kind, rank, rank, 0, rows, startNs, finishNs)));
        }
    }
}
