package dev.weft.cuda.op;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.exec.CallEvents;
import dev.weft.cuda.exec.CudaBuffers;
import dev.weft.cuda.exec.Peers;
import dev.weft.cuda.exec.sum.HostPeerSums;
import dev.weft.cuda.exec.sum.HostSums;
import dev.weft.cuda.exec.sum.SumRun;
import dev.weft.fabric.Fabric;
import dev.weft.plan.Plan;
import dev.weft.tensor.Matrix;
import java.util.Optional;

/**
 * C = sum over the ranks of A_r x B_r on a GPU, of which this rank gets its rows of C, or all. Rank
 * r has A_r, [M, its K], and B_r, [its K, N]; M and K may be cut unevenly, and a part may be empty.
 *
 * <p>By default the result has the bits of the product of all of A and B on one GPU of the same
 * kind, for any number of ranks and any cut of K at multiples of 16, and whatever arrives when
 * ({@link dev.weft.plan.Reduction.Order#WHOLE}). It is rounded once, at the end. A call queues its
 * work on the caller's stream and returns; between hosts, once all that it sends has left.
 *
 * <p>Every call writes its result to the same place: work that uses it must be queued behind the
 * call, before the next one.
 */
public final class CudaMatmulReduce extends CudaOperator {

    private final SumRun sums;

    /** Takes ownership of all arguments, and closes them. */
    CudaMatmulReduce(
            CudaGroup group,
            Plan plan,
            CudaBuffers buffers,
            Peers peers,
            CallEvents events,
            SumRun sums) {
        super(group, plan, buffers, peers, events, sums, true, 1);
        this.sums = sums;
    }

    /**
     * Ranks on GPUs, one or several to a GPU. Between hosts sums go through pinned host memory.
     *
     * @param all whether every rank gets all rows (an all-reduce), or each its own
     */
    public static CudaMatmulReduceBuilder on(Fabric fabric, Gpu gpu, boolean all) {
        return new CudaMatmulReduceBuilder(fabric, gpu, 0, all);
    }

    /**
     * This rank alone on the GPU. What its peers send it, and what it sends them, lies in pinned
     * host memory: {@link #incoming} and {@link #outgoing}.
     *
     * @param all whether every rank gets all rows (an all-reduce), or each its own
     */
    public static CudaMatmulReduceBuilder withHostPeers(Gpu gpu, int rank, boolean all) {
        return new CudaMatmulReduceBuilder(null, gpu, rank, all);
    }

    @Override
    public String engine() {
        return CudaEngine.GATED.label();
    }

    @Override
    public boolean sameBitsForAnyRows() {
        return true;
    }

    /**
     * With host peers: the sums that they send to a slot of this rank ({@link
     * dev.weft.plan.Reduction}), to be written while no call is under way. Row r is row r of C.
     * Empty if nothing arrives in that slot.
     */
    public Optional<Matrix> incoming(int index, int slot) {
        return host().incoming(index, slot);
    }

    /** With host peers: the sums that this rank sends to a slot of theirs, if it sends any. */
    public Optional<Matrix> outgoing(int index, int slot) {
        return host().outgoing(index, slot);
    }

    private HostPeerSums host() {
        if (sums instanceof HostSums host && host.exchange() instanceof HostPeerSums peerSums) {
            return peerSums;
        }
        throw new IllegalStateException("the peers are ranks of their own, not host memory");
    }

    @Override
    public DeviceMatrix peerProduct(int rank, int index) {
        throw unreachable(peers.worldRank(rank), "results of this rank alone");
    }

    @Override
    public DeviceMatrix peerGathered(int rank) {
        throw unreachable(peers.worldRank(rank), "results of this rank alone");
    }
}
