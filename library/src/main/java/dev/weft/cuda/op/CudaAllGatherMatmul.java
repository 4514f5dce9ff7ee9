package dev.weft.cuda.op;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CallEvents;
import dev.weft.cuda.exec.Copies;
import dev.weft.cuda.exec.CopyStreams;
import dev.weft.cuda.exec.CopyTimes;
import dev.weft.cuda.exec.CudaBuffers;
import dev.weft.cuda.exec.CudaEngine;
import dev.weft.cuda.exec.DeviceOperands;
import dev.weft.cuda.exec.DeviceResult;
import dev.weft.cuda.exec.DeviceTimeline;
import dev.weft.cuda.exec.HostPeers;
import dev.weft.cuda.exec.Launches;
import dev.weft.cuda.exec.Peers;
import dev.weft.cuda.kernel.DeviceProduct;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator.View;
import dev.weft.op.Result;
import dev.weft.plan.RankPlan;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.List;
import java.util.Optional;

/**
 * C = allgather(A) x B on a GPU: copy streams bring the peers' rows while one kernel multiplies
 * what is there.
 *
 * <p>With the gated engine the product is bitwise the same whatever the algorithm, the chunks and
 * the order of arrival; cuBLAS promises the float64 bound. A call queues its work on the caller's
 * stream and returns.
 *
 * <p>A ring with two buffers ({@link CudaAllGatherMatmulBuilder#pingPong}) multiplies each shard by
 * a launch of its own while the copy engines pass that shard on.
 *
 * <p>Two calls may be under way at once: gathered A has two buffers, used in turn, and if the
 * peers' rows are in host memory, a call's copies run during the product of the call before.
 * Products have one place: work that uses a product must be queued behind its call, before the next
 * one.
 */
public final class CudaAllGatherMatmul extends CudaOperator {

    private final DType aType;
    private final Copies copies;
    private final List<DeviceProduct> products;
    private final List<DeviceProduct> ready;
    private final Launches launches;
    private final List<List<DeviceMatrix>> shared;
    private final CudaEngine engine;
    private final DeviceTimeline timeline;
    private final CopyTimes copyTimes;
    private final DeviceResult result;
    private final DeviceOperands operands;
    private DeviceOperands adopted;

    /**
     * Takes ownership of all arguments except the operands, and closes them.
     *
     * @param fabric null if the peers' rows are in host memory
     * @param plan of this rank, with its arrivals cut
     * @param ready the products of rows that have all arrived, which may be the same
     * @param launches multiplies shards that share buffers; null if every shard has its own place
     * @param shared the products that all ranks may read, by number and rank; null if there are
     *     none
     */
    CudaAllGatherMatmul(
            Gpu gpu,
            Transport fabric,
            List<RankPlan> plans,
            RankPlan plan,
            List<StepPlan> stepPlans,
            CudaEngine engine,
            CudaBuffers buffers,
            DeviceOperands operands,
            Peers peers,
            Copies copies,
            List<DeviceProduct> products,
            List<DeviceProduct> ready,
            Launches launches,
            List<List<DeviceMatrix>> shared,
            CallEvents events,
            DeviceTimeline timeline,
            CopyTimes copyTimes) {
        super(gpu, fabric, plans, plan, stepPlans, buffers, peers, events, 2);
        this.engine = engine;
        this.aType = buffers.aType();
        this.copies = copies;
        this.products = List.copyOf(products);
        this.ready = List.copyOf(ready);
        this.launches = launches;
        this.shared = shared;
        this.operands = operands;
        this.timeline = timeline;
        this.copyTimes = copyTimes;
        this.result =
                new DeviceResult(
                        plan.rank(),
                        plan.chunks().shards(),
                        keepsGathered(plan),
                        !plan.lanes().isEmpty(),
                        buffers,
                        operands,
                        copies,
                        events,
                        launches,
                        timeline,
                        copyTimes);
    }

    private static boolean keepsGathered(RankPlan plan) {
        return plan.storage() == RankPlan.Storage.GATHERED
                || plan.storage() == RankPlan.Storage.IN_PLACE && plan.ranks() == 1;
    }

    /** Takes ownership of the operands too, and notes what auto chose from. */
    CudaAllGatherMatmul adopt(DeviceOperands operands, List<dev.weft.search.Candidate> all) {
        adopted = operands;
        chosenFrom(all);
        return this;
    }

    /** For tests: whether a chunk of the latest call has arrived. */
    boolean hasArrived(int source, int chunk) {
        gpu.bind();
        return events.isThere(source, chunk, started());
    }

    /** For tests, which hold copies back. */
    void hook(CopyStreams.Hook hook) {
        ((CopyStreams) copies).hook(hook);
    }

    /**
     * Ranks on GPUs, one or several to a GPU. Those of one host reach each other's device memory;
     * if they are on several hosts, all rows go through pinned host memory.
     */
    public static CudaAllGatherMatmulBuilder on(Fabric fabric, Gpu gpu) {
        return new CudaAllGatherMatmulBuilder(fabric, gpu, 0);
    }

    /** This rank alone on the GPU; the shards of its peers lie in pinned host memory. */
    public static CudaAllGatherMatmulBuilder withHostPeers(Gpu gpu, int rank) {
        return new CudaAllGatherMatmulBuilder(null, gpu, rank);
    }

    @Override
    public String engine() {
        return engine.label();
    }

    @Override
    public boolean sameBitsForAnyRows() {
        return engine.sameBitsForAnyRows();
    }

    /** Thread blocks of the product's grid; 0 if a library chooses. */
    @Override
    public int computeWorkers() {
        return products.isEmpty() ? 0 : products.getLast().blocks();
    }

    /** Copies that a call of this rank issues. */
    public int copiesPerCall() {
        return copies.count();
    }

    @Override
    DeviceMatrix place(int parity) {
        return buffers.shard(parity);
    }

    @Override
    void checkFits(DeviceMatrix shard) {
        boolean fits =
                shard.rows() == plan().chunks().shards().rows(plan().rank())
                        && shard.cols() == plan().chunks().cols()
                        && shard.dtype() == aType;
        if (!fits) {
            throw wrongShape(shard.describe(), aType.label());
        }
    }

    @Override
    void beginCall() {
        operands.begin();
    }

    @Override
    boolean sharesResults() {
        return shared != null;
    }

    @Override
    boolean isReadAfter(int call) {
        return view(call) == View.COMPUTE_ONLY;
    }

    @Override
    List<FailureReport.Sent> sent() {
        return copies.sent(started());
    }

    /** With host peers: the rows of a peer, to be written while no call is under way. */
    public Matrix peerShard(int rank) {
        if (!(peers instanceof HostPeers host)) {
            throw new IllegalStateException("the peers are ranks of their own, not host memory");
        }
        var shards = plan().chunks().shards();
        return host.shards().rows(shards.firstRow(rank), shards.rows(rank));
    }

    /**
     * The place of result number {@code index}, [M, N], for work that is queued behind a call
     * before it has ended; holds until the next call's product.
     */
    public DeviceMatrix product(int index) {
        return result.product(index);
    }

    /**
     * Gathered A of the whole call or gather that was started last, [M, K], unless rows are read in
     * place or land in two buffers.
     */
    public Optional<DeviceMatrix> gathered() {
        return result.gathered();
    }

    @Override
    public DeviceMatrix peerProduct(int rank, int index) {
        awaitResult(rank, shared != null);
        return shared.get(index).get(rank);
    }

    @Override
    public DeviceMatrix peerGathered(int rank) {
        awaitResult(rank, shared != null && lastResult().gathered().isPresent());
        return buffers.gatheredAt(peers.buffer(rank, result.gatheredCall() & 1));
    }

    /** Returns once {@code rank} has ended the latest call too. */
    private void awaitResult(int rank, boolean isShared) {
        lastResult();
        if (!isShared) {
            String expected = linked == null ? "ranks that reach each other's GPUs" : SHARED;
            throw unreachable(peers.worldRank(rank), expected);
        }
        gpu.bind();
        try {
            linked.awaitEnded(rank, started());
        } catch (RuntimeException e) {
            failed(e);
            throw withReport(e);
        }
    }

    @Override
    void run(int call, View view, GpuStream stream) {
        if (plan().storage() == RankPlan.Storage.IN_PLACE || shared != null) {
            awaitAllRows(call, stream);
        }
        switch (view) {
            case COMPUTE_ONLY -> multiply(ready, result.gatheredCall(), stream);
            case COMM_ONLY -> {
                if (launches != null) {
                    launches.begin(call, stream, false);
                }
                copies.issue(call, stream);
                copies.join(stream);
                copies.awaitPushed(call, stream);
                result.gathers(call);
            }
            case PIPELINED -> pipeline(call, stream);
        }
        if (view != View.COMM_ONLY) {
            operands.finish(stream);
        }
    }

    /**
     * A rank that reads rows in place needs all peers' rows at once. Nor may it overwrite a product
     * that peers still read: they announce their rows after that.
     */
    private void awaitAllRows(int call, GpuStream stream) {
        for (int r = 0; linked != null && r < plan().ranks(); r++) {
            if (r != plan().rank()) {
                linked.awaitRows(r, call, stream);
            }
        }
    }

    private void pipeline(int call, GpuStream stream) {
        result.gathers(call);
        if (plan().storage() == RankPlan.Storage.IN_PLACE) {
            multiply(products, call, stream);
        } else if (launches != null) {
            launches.begin(call, stream, true);
            copies.issue(call, stream);
            copies.join(stream);
        } else if (plan().pacing().gatherFirst()) {
            copies.issue(call, stream);
            copies.join(stream);
            copies.awaitPushed(call, stream);
            events.gathered(call, stream);
            multiply(products, call, stream);
        } else if (engine == CudaEngine.CUBLAS) {
            copies.beginForArrivals(call, stream);
            multiply(products, call, stream);
            copies.issueRest(call);
            copies.join(stream);
        } else {
            // The first copies are on their way before the launch, the others while it runs.
            copies.begin(call, stream);
            if (linked != null && !products.isEmpty()) {
                linked.awaitSharers(call, stream);
            }
            multiply(products, call, stream);
            copies.issueRest(call);
            if (products.isEmpty()) {
                copies.join(stream);
            } else {
                copies.endBehindProduct(stream);
            }
        }
        if (products.isEmpty()) {
            copies.awaitPushed(call, stream);
        }
    }

    private static void multiply(List<DeviceProduct> all, int epoch, GpuStream stream) {
        for (DeviceProduct product : all) {
            product.launch(epoch & 1, epoch, stream);
        }
    }

    /**
     * Queues the gated product of what the latest gather has brought, so its gates are open. For
     * tools under which a grid cannot wait for a copy that is queued after it.
     */
    void multiplyArrived(GpuStream stream) {
        multiply(products, result.gatheredCall(), stream);
    }

    @Override
    protected Result<DeviceMatrix> result() {
        return result;
    }

    @Override
    void ended(int call) {
        View view = view(call);
        boolean gatheredFirst = plan().pacing().gatherFirst() && view == View.PIPELINED;
        List<DeviceProduct> launched =
                switch (view) {
                    case COMPUTE_ONLY -> ready;
                    case COMM_ONLY -> List.of();
                    case PIPELINED -> products;
                };
        result.ended(
                call,
                launched,
                view != View.COMPUTE_ONLY,
                events.elapsedNs(call),
                gatheredFirst ? events.gatherNs(call) : 0,
                call == started());
    }

    @Override
    void closeParts() {
        products.forEach(DeviceProduct::close);
        ready.stream().filter(p -> !products.contains(p)).forEach(DeviceProduct::close);
        if (launches != null) {
            launches.close();
        }
        copies.close();
        timeline.close();
        copyTimes.close();
    }

    @Override
    void closeMemory() {
        if (adopted != null) {
            adopted.close();
        }
    }
}
