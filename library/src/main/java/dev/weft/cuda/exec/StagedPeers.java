package dev.weft.cuda.exec;

import dev.weft.cuda.kernel.PinnedBuffer;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import java.lang.foreign.MemorySegment;

/**
 * Ranks on GPUs that do not reach each other's memory, as on different hosts: rows go through
 * pinned host memory, which the ranks' threads fill and empty. Only this rank touches its device
 * memory, so the order of its streams and the end of its calls are enough to protect it.
 *
 * <p>Both halves of the host memory are free again when they are needed. A rank that announces call
 * e has awaited call e-2, so what arrived in that call is on its device. It has also returned from
 * starting call e-1, so all that it sent or fetched up to then is done.
 */
public final class StagedPeers implements Peers {

    /**
     * Deadlines that a grid waits for what comes through host memory. There the host watches, and
     * knows slow from dead; the grid's own bound is for a host that does not.
     */
    private static final int PATIENCE = 20;

    private final Transport fabric;
    private final Region region;
    private final PinnedBuffer pinned;
    private final HostSteps steps;
    private final long[] own;
    private final long flags;

    /**
     * Collective. Closes the region.
     *
     * @param pinnedFrom where in this rank's part the memory begins that its GPU reads and writes
     * @param own this rank's buffers on the device, by parity
     */
    public StagedPeers(Transport fabric, Region region, long pinnedFrom, long[] own, long flags) {
        this.fabric = fabric;
        this.region = region;
        this.own = own.clone();
        this.flags = flags;
        this.steps = new HostSteps(fabric, region);
        MemorySegment pages = region.part(fabric.rank()).asSlice(pinnedFrom);
        try {
            this.pinned = pages.byteSize() == 0 ? null : PinnedBuffer.over(pages);
        } catch (RuntimeException e) {
            region.close();
            throw e;
        }
        fabric.worked();
    }

    /** How long a grid waits, for a deadline of the host. */
    public static long longestWaitNs(long deadlineNs) {
        return Math.min(deadlineNs, Long.MAX_VALUE / (4 * PATIENCE)) * PATIENCE;
    }

    public Transport fabric() {
        return fabric;
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
        if (pinned != null) {
            pinned.close();
        }
        region.close();
    }
}
