package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.RowGather;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.op.Operator.PendingCall;
import dev.weft.op.Operator.View;
import dev.weft.op.exec.CallReport;
import dev.weft.op.exec.CallState;
import dev.weft.op.exec.GatherWorker;
import dev.weft.op.exec.LaneCall;
import dev.weft.op.exec.LaneWorker;
import dev.weft.op.exec.OperatorMemory;
import dev.weft.op.exec.Releases;
import dev.weft.op.exec.SpanLog;
import dev.weft.op.exec.Team;
import dev.weft.op.exec.Worker;
import dev.weft.op.exec.Workspace;
import dev.weft.plan.RankPlan;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

/**
 * C = allgather(A) x B on the CPU.
 *
 * <p>The result is bitwise the unfused product, whatever the algorithm, the chunks, the number of
 * ranks and the order of arrival, unless the engine promises less ({@link #sameBitsForAnyRows}).
 * Ranks that share memory and give the same B share one packed copy of it. A call allocates nothing
 * on the heap (between hosts, almost nothing). A rank may be one whole call ahead of a slow peer;
 * there is no barrier.
 */
public final class AllGatherMatmul extends Operator<Matrix> {

    private final Transport fabric;
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
    private final HostResult result;
    private final Awaited[] starts;
    private final List<Product> products;
    private final List<SharedB.Packed> sides;
    private final boolean sharedResults;
    private final PreparedEpilogue epilogue;
    private final int computeWorkers;
    private OperatorResources adopted;

    /**
     * Takes ownership of the resources, which hold the memory and the products, and closes them.
     */
    AllGatherMatmul(
            Transport fabric,
            List<RankPlan> plans,
            Gemm engine,
            DType aType,
            OperatorMemory memory,
            List<Product> products,
            List<SharedB.Packed> sides,
            Settings settings,
            OperatorResources resources) {
        super(plans, plans.get(fabric.rank()), fabric.worldRank(fabric.rank()), 1);
        this.fabric = fabric;
        this.engine = engine;
        this.aType = aType;
        this.products = products;
        this.sides = sides;
        this.sharedResults = settings.sharedResults();
        this.epilogue = settings.epilogue();
        this.memory = memory;
        this.resources = resources;
        this.computeWorkers = Math.max(settings.computeWorkers(), plan().programs());
        this.starts = new Awaited[fabric.size()];
        for (int r = 0; r < starts.length; r++) {
            starts[r] = Awaited.of(Awaited.START, r).within(1);
        }
        Workspace workspace =
                Workspace.of(plan(), fabric, memory, settings.summaries(), settings.columnParts());
        this.state = workspace.state();
        this.releases = workspace.releases();
        this.report =
                new CallReport(plan(), fabric::worldRank, new LaneCall(workspace, laneWorkers));
        this.rowGather = settings.rowGather();
        List<Worker> workers = new ArrayList<>();
        if (rowGather != null) {
            workers.add(new GatherWorker(rowGather, workspace));
        } else {
            plan().lanes().forEach(lane -> laneWorkers.add(new LaneWorker(lane, workspace)));
            workers.addAll(laneWorkers);
        }
        boolean keepGathered = settings.keepGathered();
        for (int i = 0; i < computeWorkers; i++) {
            workers.add(
                    new ComputeWorker(
                            i,
                            workspace,
                            keepGathered,
                            engine,
                            products,
                            settings.scaling(),
                            epilogue,
                            resources.arena()));
        }
        List<SpanLog> logs =
                Stream.concat(Stream.of(staging), workers.stream().map(Worker::log)).toList();
        this.result = new HostResult(fabric.rank(), products, memory, keepGathered, state, logs);
        // A gather is too short to hand to another thread: its caller only waits for it anyway.
        Runnable awaited = products.isEmpty() ? workers.removeLast() : null;
        this.team =
                new Team(
                        "weft-" + fabric.worldRank(fabric.rank()),
                        workers.toArray(Runnable[]::new),
                        awaited,
                        task -> pin(task, settings.pinning()),
                        this::failed);
    }

    private static void pin(Runnable task, Pinning pinning) {
        if (task instanceof ComputeWorker worker) {
            pinning.apply(worker.index());
        }
    }

    /** Also takes ownership of the products' memory, and keeps the candidates of auto. */
    void adopt(OperatorResources more, List<dev.weft.search.Candidate> all) {
        this.adopted = more;
        chosenFrom(all);
    }

    /** Starts to describe an operator on the ranks of {@code fabric}. */
    public static AllGatherMatmulBuilder on(Fabric fabric) {
        return new AllGatherMatmulBuilder(fabric);
    }

    @Override
    public String engine() {
        return engine.name();
    }

    @Override
    public boolean sameBitsForAnyRows() {
        return engine.bits() != Gemm.Bits.NONE;
    }

    @Override
    public long reachableBytes() {
        return memory.bytes(plan().rank());
    }

    @Override
    public int computeWorkers() {
        return computeWorkers;
    }

    @Override
    public Matrix nextShard() {
        checkUsable();
        return awaitNextShard();
    }

    @Override
    public Result<Matrix> callInPlace(View view) {
        queue(null, view);
        return pending().await();
    }

    @Override
    public PendingCall<Matrix> start(Matrix shard) {
        boolean fits =
                shard.rows() == plan().chunks().shards().rows(plan().rank())
                        && shard.cols() == plan().chunks().cols()
                        && shard.dtype() == aType;
        if (!fits) {
            throw misfit(shard.describe(), aType.label());
        }
        queue(shard, View.PIPELINED);
        return pending();
    }

    private void queue(Matrix shard, View view) {
        checkUsable();
        if (epilogue != null) {
            epilogue.begin();
        }
        state.startNs = System.nanoTime();
        staging.clear();
        Matrix place = awaitNextShard();
        if (shard != null && shard.data().address() != place.data().address()) {
            place.copyFrom(shard);
            int rank = plan().rank();
            staging.add(Timeline.Kind.STAGE, rank, rank, 0, place.rows(), state.startNs);
        }
        // Only now: if the copy throws, nothing has started, and the peers still wait for this
        // call.
        state.call = begin(view);
        state.view = view;
        state.gatheredNs = 0;
        for (AtomicInteger next : state.nextPiece) {
            next.set(0);
        }
        releases.begin(state.call, view);
        // Release: pairs with the acquire of peers that get from this shard or multiply out of it,
        // and of peers that are about to reuse the other half.
        fabric.publish(memory.region(), OperatorMemory.START_AT, state.call);
        team.start();
    }

    @Override
    public void replaceB(int index, Matrix b) {
        checkNotUnderWay();
        SharedB.Packed packed = sides.get(index);
        try {
            new SharedB(fabric, engine).replace(index, packed, b);
        } catch (IllegalArgumentException | UnsupportedOperationException e) {
            // All ranks refuse alike, and nothing was replaced.
            throw e;
        } catch (RuntimeException e) {
            failed(e);
            throw told(e);
        }
    }

    /** The reuse rule (see the package): waits until peers have started this rank's latest call. */
    private Matrix awaitNextShard() {
        try {
            for (int r = 0; r < starts.length; r++) {
                fabric.await(memory.region(), r, OperatorMemory.START_AT, state.call, starts[r]);
            }
        } catch (RuntimeException e) {
            failed(e);
            throw told(e);
        }
        return memory.shard(plan().rank(), state.call + 1);
    }

    @Override
    protected void tellPeers(Throwable cause) {
        report.ended(cause);
        fabric.fail(cause);
    }

    @Override
    protected RuntimeException told(RuntimeException cause) {
        if (cause instanceof FabricException e) {
            report.attachTo(e);
        }
        return cause;
    }

    @Override
    protected Result<Matrix> result() {
        return result;
    }

    @Override
    protected boolean isDone() {
        return team.isDone();
    }

    @Override
    protected void awaitEnd(int call) {
        team.await();
        result.ended(System.nanoTime());
        if (sharedResults && !hasFailed()) {
            // Release: pairs with the acquire of peers that read this call's results.
            fabric.publish(memory.region(), OperatorMemory.ENDED_AT, call);
        }
    }

    @Override
    public Matrix peerProduct(int rank, int index) {
        Matrix[][] peers = products.get(index).peers();
        return awaitResult(peers == null ? null : peers[OperatorMemory.half(started())], rank);
    }

    @Override
    public Matrix peerGathered(int rank) {
        boolean kept = sharedResults && lastResult().gathered().isPresent();
        Matrix[] all = new Matrix[plan().ranks()];
        Arrays.setAll(all, r -> memory.gathered(r, started()));
        return awaitResult(kept ? all : null, rank);
    }

    /**
     * The result of {@code rank}, once it is complete; {@code results} is null if none are shared.
     */
    private Matrix awaitResult(Matrix[] results, int rank) {
        lastResult();
        if (results == null || results[rank] == null) {
            throw unreachable(
                    fabric.worldRank(rank), results == null ? SHARED : "ranks of one host");
        }
        try {
            Awaited end = Awaited.of(Awaited.END, rank).within(1);
            fabric.await(memory.region(), rank, OperatorMemory.ENDED_AT, started(), end);
        } catch (RuntimeException e) {
            failed(e);
            throw told(e);
        }
        return results[rank];
    }

    /** Waits for a running call, stops the workers and frees all memory. */
    @Override
    public void close() {
        if (!closes()) {
            return;
        }
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
