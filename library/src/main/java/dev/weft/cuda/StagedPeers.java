package dev.weft.cuda;

import dev.weft.fabric.transport.Transport;
import dev.weft.op.exec.OperatorMemory;
import dev.weft.plan.Chunks;
import dev.weft.tensor.DType;

/**
 * Ranks on GPUs that do not reach each other's memory, since they are on different hosts: rows go
 * through pinned memory of the hosts, which {@link StagedCopies} fills and empties. Nobody but this
 * rank touches its device memory, so the order of its streams and the end of its calls are all that
 * keep it.
 *
 * <p>Both slots of the host memory are free again when they are wanted. Who announces a call has
 * awaited the one before the last, so what arrived then is on its device; and has returned from the
 * start of the last one, so all that it sent or fetched in that and in earlier calls is done.
 */
final class StagedPeers implements Peers {

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
    StagedPeers(Transport fabric, Chunks chunks, DType dtype, long[] own, long flags) {
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

    Transport fabric() {
        return fabric;
    }

    OperatorMemory memory() {
        return memory;
    }

    /** The address of this rank's shard in host memory. */
    long hostShard(int parity) {
        return memory.shard(fabric.rank(), parity).data().address();
    }

    /** The address of all rows that arrive in this rank's host memory. */
    long hostLanding(int parity) {
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
