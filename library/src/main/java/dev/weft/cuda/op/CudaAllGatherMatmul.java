package dev.weft.cuda.op;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.exec.CallEvents;
import dev.weft.cuda.exec.CudaBuffers;
import dev.weft.cuda.exec.GatherRun;
import dev.weft.cuda.exec.HostPeers;
import dev.weft.cuda.exec.Peers;
import dev.weft.fabric.Fabric;
import dev.weft.plan.Plan;
import dev.weft.plan.Shards;
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

    private final CudaEngine engine;
    private final GatherRun run;
    private final GatherAssembly assembly;

    /** The products that all ranks may read, by number and rank; null if there are none. */
    private final List<List<DeviceMatrix>> shared;

    /** Takes ownership of all arguments, and closes them. */
    CudaAllGatherMatmul(
            CudaGroup group,
            Plan plan,
            CudaEngine engine,
            CudaBuffers buffers,
            Peers peers,
            CallEvents events,
            GatherRun run,
            GatherAssembly assembly,
            List<List<DeviceMatrix>> shared) {
        super(group, plan, buffers, peers, events, run, false, 2);
        this.engine = engine;
        this.run = run;
        this.assembly = assembly;
        this.shared = shared;
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

    /** Adds what calls of fewer rows take. Collective. */
    void addFewerRows(CudaPlanning planning, DType productType) {
        assembly.addFewerRows(run, planning, productType);
    }

    @Override
    public String engine() {
        return engine.label();
    }

    @Override
    public boolean sameBitsForAnyRows() {
        return engine.sameBitsForAnyRows();
    }

    /** With host peers: the rows of a peer, to be written while no call is under way. */
    public Matrix peerShard(int rank) {
        return peerShard(rank, mostRows());
    }

    /** Likewise of a peer in calls of these rows: without gaps between shards. */
    public Matrix peerShard(int rank, Shards shards) {
        checkRows(shards);
        Matrix all = peers instanceof HostPeers host ? host.shards() : null;
        if (all == null) {
            throw new IllegalStateException("the peers are ranks of their own, not host memory");
        }
        return all.rows(shards.firstRow(rank), shards.rows(rank));
    }

    /**
     * Gathered A of the whole call or gather that was started last, [M, K], unless rows are read in
     * place or land in two buffers.
     */
    public Optional<DeviceMatrix> gathered() {
        return run.gathered();
    }

    @Override
    public DeviceMatrix peerProduct(int rank, int index) {
        awaitResult(rank, shared != null);
        return shared.get(index).get(rank).rows(0, run.product(index).rows());
    }

    @Override
    public DeviceMatrix peerGathered(int rank) {
        awaitResult(rank, shared != null && lastResult().gathered().isPresent());
        return run.gatheredAt(peers.buffer(rank, run.gatheredCall() & 1));
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
}
