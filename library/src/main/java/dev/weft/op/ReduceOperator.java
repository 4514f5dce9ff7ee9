package dev.weft.op;

import dev.weft.fabric.FabricException;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.op.exec.CallReport;
import dev.weft.op.exec.CallState;
import dev.weft.op.exec.LaneWorker;
import dev.weft.op.exec.Releases;
import dev.weft.op.exec.SpanLog;
import dev.weft.op.exec.SumMemory;
import dev.weft.op.exec.Team;
import dev.weft.op.exec.Worker;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Reduction;
import dev.weft.tensor.Matrix;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * C = sum over the ranks of A_r x B_r on the CPU, where rank r has A_r [M, its K] and B_r [its K,
 * N]. A call allocates nothing on the heap (between hosts, almost nothing). A rank may be one whole
 * call ahead of a slow peer; there is no barrier.
 */
abstract sealed class ReduceOperator extends Operator<Matrix>
        permits MatmulReduceScatter, MatmulAllReduce {

    private final Transport fabric;
    private final RankSums shared;
    private final SumMemory memory;
    private final CallState state;
    private final OperatorResources resources;
    private final OperatorResources common;
    private final CallReport report;
    private final SpanLog staging = new SpanLog("caller", 1);
    private final List<LaneWorker> laneWorkers = new ArrayList<>();
    private final Team team;
    private final Outcome outcome;
    private final Awaited[] starts;
    private final List<SharedB.Packed> sides;
    private final int workers;
    private boolean ownsCommon;

    /**
     * The parts of one operator.
     *
     * @param sides this rank's right-hand sides
     * @param resources those of this operator alone
     * @param common those it shares with the others that its builder tries
     */
    record Parts(
            Transport fabric,
            List<RankPlan> plans,
            RankSums shared,
            List<SharedB.Packed> sides,
            int workers,
            OperatorResources resources,
            OperatorResources common) {}

    ReduceOperator(Parts parts) {
        super(
                parts.plans(),
                parts.shared().plan,
                parts.fabric().worldRank(parts.fabric().rank()),
                1);
        this.fabric = parts.fabric();
        this.shared = parts.shared();
        this.memory = shared.memory;
        this.state = shared.state;
        this.resources = parts.resources();
        this.common = parts.common();
        this.sides = parts.sides();
        this.workers = parts.workers();
        this.starts = new Awaited[fabric.size()];
        for (int r = 0; r < starts.length; r++) {
            starts[r] = Awaited.of(Awaited.START, r).within(1);
        }
        // Every chunk has its own place, so no buffer is ever released.
        Releases none = new Releases(plan(), fabric, null, 1);
        plan().lanes()
                .forEach(
                        lane ->
                                laneWorkers.add(
                                        new LaneWorker(
                                                lane, plan(), fabric, memory, state, none, -1)));
        List<Worker> all = new ArrayList<>(laneWorkers);
        for (int i = 0; i < workers; i++) {
            all.add(new SumWorker(i, shared, resources.arena()));
        }
        this.report = new CallReport(plan(), fabric::worldRank, new LatestCall());
        this.outcome =
                new Outcome(
                        Stream.concat(Stream.of(staging), all.stream().map(Worker::log)).toList());
        this.team =
                new Team(
                        "weft-" + fabric.worldRank(fabric.rank()),
                        all.toArray(Runnable[]::new),
                        task -> {},
                        this::failed);
    }

    /** From now on, closing this operator also frees what it shares with others. */
    final void ownCommon(List<dev.weft.search.Candidate> candidates) {
        this.ownsCommon = true;
        if (!candidates.isEmpty()) {
            chosenFrom(candidates);
        }
    }

    @Override
    public final String engine() {
        return shared.gemm.name();
    }

    @Override
    public final boolean sameBitsForAnyRows() {
        return shared.gemm.bits() != Gemm.Bits.NONE;
    }

    @Override
    public final int computeWorkers() {
        return workers;
    }

    @Override
    public final long reachableBytes() {
        return memory.bytes();
    }

    /**
     * The next call's A, [M, K of this rank]. A call may read the caller's A in place, so {@link
     * #callInPlace} uses only what was written here.
     */
    @Override
    public final Matrix nextShard() {
        checkUsable();
        return awaitNextInput();
    }

    @Override
    public final Result<Matrix> callInPlace(View view) {
        queue(null, view);
        return pending().await();
    }

    /**
     * Starts a call with this rank's A, [M, its K], which must not change until the call has ended.
     */
    @Override
    public final PendingCall<Matrix> start(Matrix a) {
        Matrix place = memory.input(plan().rank(), 0);
        if (a.rows() != place.rows() || a.cols() != place.cols() || a.dtype() != place.dtype()) {
            throw new IllegalArgumentException(
                    "A of rank %d is %s: expected %s"
                            .formatted(
                                    fabric.worldRank(plan().rank()),
                                    a.describe(),
                                    place.describe()));
        }
        queue(a, View.PIPELINED);
        return pending();
    }

    private void queue(Matrix a, View view) {
        checkUsable();
        state.startNs = System.nanoTime();
        staging.clear();
        shared.epilogue.begin();
        Matrix place = awaitNextInput();
        boolean copies = a != null && plan().storage() == RankPlan.Storage.SUMS_IN_PLACE;
        if (copies && a.data().address() != place.data().address()) {
            place.copyFrom(a);
            staging.add(
                    Timeline.Kind.STAGE,
                    plan().rank(),
                    plan().rank(),
                    0,
                    place.rows(),
                    state.startNs);
        }
        shared.a = a == null || copies ? place : a;
        // Only now: if the copy throws, nothing has started, and the peers still wait for this
        // call.
        state.call = begin(view);
        state.view = view;
        shared.begin();
        // Release: pairs with the acquire of peers that multiply out of this A, and of peers that
        // are about to reuse the other half.
        fabric.publish(memory.region(), SumMemory.START_AT, state.call);
        team.start();
    }

    @Override
    public final void replaceB(int index, Matrix b) {
        checkNotUnderWay();
        SharedB.Packed packed = sides.get(index);
        try {
            // A rank's B is its own, even if peers read it.
            new SharedB(fabric, shared.gemm).replace(index, packed, b);
        } catch (IllegalArgumentException | UnsupportedOperationException e) {
            // All ranks refuse alike, and nothing was replaced.
            throw e;
        } catch (RuntimeException e) {
            failed(e);
            throw told(e);
        }
    }

    /** Waits until every peer has started this rank's latest call. */
    private Matrix awaitNextInput() {
        try {
            for (int r = 0; r < starts.length; r++) {
                fabric.await(memory.region(), r, SumMemory.START_AT, state.call, starts[r]);
            }
        } catch (RuntimeException e) {
            failed(e);
            throw told(e);
        }
        return memory.input(plan().rank(), state.call + 1);
    }

    @Override
    protected final void tellPeers(Throwable cause) {
        report.ended(cause);
        fabric.fail(cause);
    }

    @Override
    protected final RuntimeException told(RuntimeException cause) {
        if (cause instanceof FabricException e) {
            report.attachTo(e);
        }
        return cause;
    }

    @Override
    protected final Result<Matrix> result() {
        return outcome;
    }

    @Override
    protected final boolean isDone() {
        return team.isDone();
    }

    @Override
    protected final void awaitEnd(int call) {
        team.await();
        outcome.endNs = System.nanoTime();
    }

    @Override
    public final Matrix peerProduct(int rank, int index) {
        throw unreachable(fabric.worldRank(rank), "results of this rank alone");
    }

    @Override
    public final Matrix peerGathered(int rank) {
        throw unreachable(fabric.worldRank(rank), "results of this rank alone");
    }

    /** Waits for a running call, stops the workers and frees all memory. */
    @Override
    public final void close() {
        if (!closes()) {
            return;
        }
        team.await();
        team.close();
        laneWorkers.forEach(LaneWorker::close);
        resources.close();
        if (ownsCommon) {
            common.close();
        }
    }

    private final class Outcome implements Result<Matrix> {

        private final List<SpanLog> logs;
        private long endNs;

        Outcome(List<SpanLog> logs) {
            this.logs = logs;
        }

        @Override
        public Matrix product(int index) {
            return shared.results[index];
        }

        @Override
        public Optional<Matrix> gathered() {
            return Optional.empty();
        }

        @Override
        public long elapsedNs() {
            return endNs - state.startNs;
        }

        /** The time after the product, if nothing overlaps. */
        @Override
        public long gatherNs() {
            return plan().pacing().gatherFirst() ? endNs - shared.multipliedNs : 0;
        }

        @Override
        public Timeline timeline() {
            List<Timeline.Track> tracks = logs.stream().map(l -> l.track(state.startNs)).toList();
            return new Timeline(plan().rank(), state.startNs, elapsedNs(), tracks);
        }
    }

    private final class LatestCall implements CallReport.Call {

        @Override
        public String operator() {
            return memory.region().name();
        }

        @Override
        public int number() {
            return state.call;
        }

        @Override
        public boolean moves() {
            return state.view != View.COMPUTE_ONLY && number() > 0;
        }

        @Override
        public boolean isStarted(int rank, int number) {
            return fabric.reached(memory.region(), rank, SumMemory.START_AT, number);
        }

        @Override
        public boolean hasArrived(int source, int chunk) {
            int tag = plan().chunks().tag(source, chunk);
            for (int slot = 0; slot < Reduction.slotOf(plan().ranks()); slot++) {
                long flag = memory.flagAt(slot, tag);
                if (memory.arrives(slot, tag)
                        && !fabric.reached(memory.region(), plan().rank(), flag, number())) {
                    return false;
                }
            }
            return true;
        }

        @Override
        public List<FailureReport.Sent> sent() {
            return laneWorkers.stream().map(LaneWorker::sent).toList();
        }
    }
}
