package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.exec.OperatorMemory;
import dev.weft.plan.Chunks;
import dev.weft.tensor.DType;

/**
 * Ranks on GPUs that do not reach each other's memory, as on different hosts: rows go through
 * pinned host memory, which {@link StagedCopies} fills and empties. Only this rank touches its
 * device memory, so the order of its streams and the end of its calls are enough to protect it.
 *
 * <p>Both halves of the host memory are free again when they are needed. A rank that announces call
 * e has awaited call e-2, so what arrived in that call is on its device. It has also returned from
 * starting call e-1, so all that it sent or fetched up to then is done.
 */
public final class StagedPeers implements Peers {

    private final Transport fabric;
    private final OperatorMemory memory;
    private final PinnedBuffer pinned;
    private final HostSteps steps;
    private final long[] own;
    private final long flags;

    /**
     * Collective.
     *
     * @param own this rank's buffers on the device, by parity
     */
    public StagedPeers(Transport fabric, Chunks chunks, DType dtype, long[] own, long flags) {
        this.fabric = fabric;
        this.own = own.clone();
        this.flags = flags;
        long pitchBytes = DeviceMatrix.alignedPitch(dtype, chunks.cols()) * dtype.bytes();
        this.memory = OperatorMemory.staged(fabric, chunks, dtype, pitchBytes);
        this.steps = new HostSteps(fabric, memory.region());
        int rank = fabric.rank();
        try {
            this.pinned =
                    PinnedBuffer.over(memory.region().part(rank).asSlice(memory.shardAt(rank, 0)));
        } catch (RuntimeException e) {
            memory.region().close();
            throw e;
        }
        fabric.worked();
    }

    public Transport fabric() {
        return fabric;
    }

    public OperatorMemory memory() {
        return memory;
    }

    /** The address of this rank's shard in host memory. */
    public long hostShard(int parity) {
        return memory.shard(fabric.rank(), parity).data().address();
    }

    /** The address of all rows that arrive in this rank's host memory. */
    public long hostLanding(int parity) {
        return memory.gathered(fabric.rank(), parity).data().address();
    }

    @Override
    public int worldRank(int of) {
        return fabric.worldRank(of);
    }

    /** This GPU sees every rank's rows where they arrive. */
    @Override
    public long buffer(int of, int parity) {
        return own[parity];
    }

    @Override
    public long flags(int of) {
        return flags;
    }

    @Override
    public HostSteps steps() {
        return steps;
    }

    /**
     * Memory may always be freed. But that holds up every thread of the process, and with them
     * peers whose grids wait for what those threads queue.
     */
    @Override
    public boolean awaitRelease(boolean failed) {
        if (fabric.kind().equals("threads")) {
            steps.awaitDrained(failed);
        }
        return true;
    }

    @Override
    public void close() {
        pinned.close();
        memory.region().close();
    }
}
