package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.kernel.PinnedBuffer;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;

/**
 * Peers whose GPUs this one does not reach: what travels goes through pinned host memory. Only this
 * rank touches its device memory, so the order of its streams and the end of its calls are enough
 * to protect it. Two kinds:
 *
 * <ul>
 *   <li>No ranks at all, but memory of this host with the shards of all, laid out like gathered A
 *       and the same for every call: one GPU and a real link.
 *   <li>Ranks, as on other hosts, whose threads fill and empty the host memory. Both halves of it
 *       are free again when they are needed. A rank that announces call e has awaited call e-2, so
 *       what arrived in that call is on its device. It has also returned from starting call e-1, so
 *       all that it sent or fetched up to then is done.
 * </ul>
 */
public final class HostPeers implements Peers {

    /**
     * Deadlines that a grid waits for what comes from other hosts. There the host watches, and
     * knows slow from dead; the grid's own bound is for a host that does not.
     */
    private static final int DEADLINES = 20;

    private final int rank;
    private final long[] own;
    private final long flags;

    /** Null if there are no ranks. */
    private final Transport fabric;

    private final Region region;
    private final HostSteps steps;

    /** Null if this rank shows nothing. */
    private final PinnedBuffer pinned;

    /** All rows, if the peers are memory alone; else null. */
    private final Matrix shards;

    /**
     * Memory alone.
     *
     * @param own this rank's buffers on the device, by parity
     */
    public HostPeers(int rank, DType dtype, long rows, long cols, long[] own, long flags) {
        this.rank = rank;
        this.own = own.clone();
        this.flags = flags;
        this.fabric = null;
        this.region = null;
        this.steps = null;
        this.pinned = PinnedBuffer.allocate(DeviceMatrix.alignedBytes(dtype, rows, cols));
        long pitch = DeviceMatrix.alignedPitch(dtype, cols);
        this.shards = new Matrix(pinned.segment(), dtype, rows, cols, pitch);
    }

    /**
     * Ranks. Collective. Closes the region.
     *
     * @param pinnedFrom where in this rank's part the memory begins that its GPU reads and writes
     * @param own this rank's buffers on the device, by parity
     */
    public HostPeers(Transport fabric, Region region, long pinnedFrom, long[] own, long flags) {
        this.rank = fabric.rank();
        this.own = own.clone();
        this.flags = flags;
        this.fabric = fabric;
        this.region = region;
        this.steps = new HostSteps(fabric, region);
        this.shards = null;
        MemorySegment pages = region.part(rank).asSlice(pinnedFrom);
        try {
            this.pinned = pages.byteSize() == 0 ? null : PinnedBuffer.over(pages);
        } catch (RuntimeException e) {
            region.close();
            throw e;
        }
        fabric.worked();
    }

    /** How long a grid waits for what comes from other hosts, for a deadline of the host. */
    public static long longestWaitNs(long deadlineNs) {
        return Math.min(deadlineNs, Long.MAX_VALUE / (4 * DEADLINES)) * DEADLINES;
    }

    /** All rows in host memory; those of the peers are what a call gathers. Null with ranks. */
    public Matrix shards() {
        return shards;
    }

    @Override
    public int worldRank(int of) {
        return fabric == null ? of : fabric.worldRank(of);
    }

    /** This GPU sees the rows of ranks where they arrive. */
    @Override
    public long buffer(int of, int parity) {
        return of == rank || shards == null ? own[parity] : pinned.address();
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
        if (fabric != null && fabric.kind().equals("threads")) {
            steps.awaitDrained(failed);
        }
        return true;
    }

    @Override
    public void close() {
        if (pinned != null) {
            pinned.close();
        }
        if (region != null) {
            region.close();
        }
    }
}
