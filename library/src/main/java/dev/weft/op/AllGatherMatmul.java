package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.RowGather;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.op.exec.CallReport;
import dev.weft.op.exec.CallState;
import dev.weft.op.exec.GatherWorker;
import dev.weft.op.exec.LaneWorker;
import dev.weft.op.exec.OperatorMemory;
import dev.weft.op.exec.Releases;
import dev.weft.op.exec.SpanLog;
import dev.weft.op.exec.Team;
import dev.weft.op.exec.Workspace;
import dev.weft.plan.Lane;
import dev.weft.plan.RankPlan;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;

/**
 * C = allgather(A) x B, prepared once and called many times. Every rank of the fabric prepares it,
 * calls it and closes it, in the same order.
 *
 * <p>The result is bitwise the unfused product, whatever the algorithm, the chunks, the number of
 * ranks and the order of arrival, unless the engine promises less ({@link
 * Gemm#sameBitsForAnyRows}). Ranks that share memory and give the same B share one packed copy of
 * it. A call allocates nothing on the heap (between hosts, next to nothing). A rank may be one
 * whole call ahead of a slow peer; there is no barrier. A call that cannot complete ends on every
 * rank with a {@link FabricException}, which says how things stood there ({@link
 * FabricException#report}), after which the operator can only be closed.
 *
 * <p>One thread at a time uses an operator; several operators may be in use at once.
 */
public final class AllGatherMatmul implements AutoCloseable {

    private final Transport fabric;
    private final List<RankPlan> plans;
    private final RankPlan plan;
    private final Gemm engine;
    private final DType aType;
    private final OperatorMemory memory;
    private final OperatorResources resources;
    private final Releases releases;
    private final CallState state;
    private final CallReport report;
    private final SpanLog staging = new SpanLog("caller", 1);
    private final List<LaneWorker> laneWorkers = new ArrayList<>();
    private final RowGather rowGather;
    private final Team team;
    private final Result result;
    private final PendingCall pending = new PendingCall(this);
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private final Awaited[] starts;
    private final int computeWorkers;
    private List<Candidate> candidates;
    private OperatorResources adopted;
    private int callsOfTrial;
    private boolean underWay;
    private boolean closed;

    /** Takes over the resources, which the memory and the products lie in, and closes them. */
    AllGatherMatmul(
            Transport fabric,
            List<RankPlan> plans,
            RankPlan plan,
            Gemm engine,
            DType aType,
            OperatorMemory memory,
            List<Product> products,
            Settings settings,
            OperatorResources resources) {
        this.fabric = fabric;
        this.plans = plans;
        this.plan = plan;
        this.engine = engine;
        this.aType = aType;
        this.memory = memory;
        this.resources = resources;
        this.computeWorkers = settings.computeWorkers();
        this.candidates = settings.candidates();
        this.starts = new Awaited[fabric.size()];
        for (int r = 0; r < starts.length; r++) {
            starts[r] = Awaited.of(Awaited.START, r).within(1);
        }
        List<Runnable> tasks = new ArrayList<>();
        List<SpanLog> logs = new ArrayList<>(List.of(staging));
        Workspace workspace = Workspace.of(plan, fabric, memory, settings.summaries());
        this.state = workspace.state();
        this.releases = workspace.releases();
        this.report = new CallReport(workspace, laneWorkers);
        this.rowGather = settings.rowGather();
        if (rowGather != null) {
            GatherWorker worker = new GatherWorker(rowGather, workspace);
            tasks.add(worker);
            logs.add(worker.log());
        } else {
            for (Lane lane : plan.lanes()) {
                LaneWorker worker = new LaneWorker(lane, workspace);
                laneWorkers.add(worker);
                tasks.add(worker);
                logs.add(worker.log());
            }
        }
        for (int i = 0; i < computeWorkers; i++) {
            ComputeWorker worker =
                    new ComputeWorker(
                            i,
                            workspace,
                            settings.keepGathered(),
                            engine,
                            products,
                            resources.arena());
            tasks.add(worker);
            logs.add(worker.log());
        }
        this.result =
                new Result(fabric.rank(), products, memory, settings.keepGathered(), state, logs);
        String name = "weft-" + fabric.worldRank(fabric.rank());
        this.team =
                new Team(
                        name,
                        tasks.toArray(Runnable[]::new),
                        task -> pin(task, settings.pinning()),
                        this::failed);
    }

    private static void pin(Runnable task, Pinning pinning) {
        if (task instanceof ComputeWorker worker) {
            pinning.apply(worker.index());
        }
    }

    /** Takes over, as well, what the products lie in, and what auto chose this operator from. */
    void adopt(OperatorResources more, List<Candidate> chosenFrom) {
        this.adopted = more;
        this.candidates = chosenFrom;
        this.callsOfTrial = state.call;
    }

    /** Starts to describe an operator on the ranks of {@code fabric}. */
    public static AllGatherMatmulBuilder on(Fabric fabric) {
        return new AllGatherMatmulBuilder(fabric);
    }

    /** What every call does on this rank. */
    public RankPlan plan() {
        return plan;
    }

    /**
     * What every call does on every rank, in rank order, for another operator that does the same:
     * see {@link AllGatherMatmulBuilder#plans}.
     */
    public List<RankPlan> plans() {
        return plans;
    }

    /**
     * What {@link dev.weft.plan.Algorithm#AUTO} looked at, the plans that were tried first; empty
     * where the caller chose the algorithm. The first rank knows all, the others what was tried.
     */
    public List<Candidate> candidates() {
        return candidates;
    }

    /** The engine that multiplies. */
    public Gemm engine() {
        return engine;
    }

    /** Bytes that this rank keeps where peers can reach them: shards, flags and what lands here. */
    public long reachableBytes() {
        return memory.bytes(plan.rank());
    }

    /** Threads of this rank that multiply. */
    public int computeWorkers() {
        return computeWorkers;
    }

    /** The latest call's result, as that call returned it. */
    public Result lastResult() {
        if (state.call == callsOfTrial) {
            throw new IllegalStateException("no call has been made yet");
        }
        checkUsable();
        return result;
    }

    /**
     * The place of the next call's shard, [rows of this rank, K], for producers that write it there
     * themselves; given to {@link #call} it is not copied. Waits, like {@link #start}, for peers
     * that are a call behind. Its content is what an earlier call left there.
     */
    public Matrix nextShard() {
        checkUsable();
        return awaitNextShard();
    }

    /** Gathers, multiplies and returns the result. Collective. */
    public Result call(Matrix shard) {
        return start(shard).await();
    }

    /** As {@link #call}, with the shard that lies in {@link #nextShard()}, and one of the views. */
    public Result callInPlace(View view) {
        begin(null, view);
        return finish();
    }

    /** Starts a call and returns while it runs; the shard must not change until it has ended. */
    public PendingCall start(Matrix shard) {
        checkShard(shard);
        begin(shard, View.PIPELINED);
        return pending;
    }

    private void checkShard(Matrix shard) {
        long rows = plan.chunks().shards().rows(plan.rank());
        if (shard.rows() != rows
                || shard.cols() != plan.chunks().cols()
                || shard.dtype() != aType) {
            throw new IllegalArgumentException(
                    "the shard of rank "
                            + fabric.worldRank(plan.rank())
                            + " is "
                            + shard.describe()
                            + ": expected ["
                            + rows
                            + ", "
                            + plan.chunks().cols()
                            + "] "
                            + aType.label());
        }
    }

    private void checkUsable() {
        if (closed || failure.get() != null) {
            throw new IllegalStateException(
                    closed ? "the operator is closed" : "the operator has failed", failure.get());
        }
        if (underWay) {
            throw new IllegalStateException("a call is under way: await it first");
        }
    }

    private void begin(Matrix shard, View view) {
        checkUsable();
        state.startNs = System.nanoTime();
        staging.clear();
        Matrix slot = awaitNextShard();
        if (shard != null && shard.data().address() != slot.data().address()) {
            slot.copyFrom(shard);
            staging.add(
                    Timeline.Kind.STAGE, plan.rank(), plan.rank(), 0, slot.rows(), state.startNs);
        }
        // Only now: a copy that throws has started nothing, and the peers still wait for this call.
        state.call++;
        state.view = view;
        state.gatheredNs = 0;
        state.nextBlock.set(0);
        releases.begin(state.call, view);
        // Release: pairs with the acquire of peers that get from this shard or multiply out of it,
        // and of peers that want to reuse the other slot.
        fabric.publish(memory.region(), OperatorMemory.START_AT, state.call);
        underWay = true;
        team.start();
    }

    /** The reuse rule (see the package): every peer has started the latest call of this rank. */
    private Matrix awaitNextShard() {
        try {
            for (int r = 0; r < starts.length; r++) {
                fabric.await(memory.region(), r, OperatorMemory.START_AT, state.call, starts[r]);
            }
        } catch (RuntimeException e) {
            failed(e);
            throw told(e);
        }
        return memory.shard(plan.rank(), state.call + 1);
    }

    /** Also called by the team's threads. */
    private void failed(Throwable cause) {
        failure.compareAndSet(null, cause);
        report.ended(cause);
        fabric.fail(cause);
    }

    /** The same with how things stand here; no worker runs. */
    private RuntimeException told(RuntimeException cause) {
        if (cause instanceof FabricException e) {
            report.attachTo(e);
        }
        return cause;
    }

    boolean isDone() {
        return team.isDone();
    }

    Result finish() {
        if (!underWay) {
            throw new IllegalStateException("no call is under way");
        }
        team.await();
        underWay = false;
        result.ended(System.nanoTime());
        Throwable cause = failure.get();
        CallEvent.ended(
                fabric.worldRank(plan.rank()),
                state,
                plan.name(),
                result.elapsedNs(),
                cause == null);
        if (cause != null) {
            throw cause instanceof RuntimeException e ? told(e) : new IllegalStateException(cause);
        }
        return result;
    }

    /** Waits for a call under way, ends the workers and frees all memory. */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        team.await();
        team.close();
        laneWorkers.forEach(LaneWorker::close);
        if (rowGather != null) {
            rowGather.close();
        }
        resources.close();
        if (adopted != null) {
            adopted.close();
        }
    }
}
