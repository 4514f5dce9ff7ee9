package dev.weft.cuda;

import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;

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
    private final StagedLayout layout;
    private final Region region;
    private final PinnedBuffer pinned;
    private final HostSteps steps;
    private final long[] own;
    private final long flags;

    /**
     * Collective.
     *
     * @param own this rank's buffers on the device, by parity
     */
    StagedPeers(Transport fabric, StagedLayout layout, long[] own, long flags) {
        this.fabric = fabric;
        this.layout = layout;
        this.own = own.clone();
        this.flags = flags;
        this.region = fabric.allocate(layout.bytes(fabric.rank()));
        this.steps = new HostSteps(fabric, region);
        try {
            this.pinned = PinnedBuffer.over(region.part(rank()).asSlice(layout.rowsAt()));
        } catch (RuntimeException e) {
            region.close();
            throw e;
        }
        fabric.worked();
    }

    Transport fabric() {
        return fabric;
    }

    StagedLayout layout() {
        return layout;
    }

    Region region() {
        return region;
    }

    /** The address of this rank's shard in host memory. */
    long hostShard(int parity) {
        return region.part(rank()).address() + layout.shardAt(rank(), parity);
    }

    /** The address of all rows that arrive in this rank's host memory. */
    long hostLanding(int parity) {
        return region.part(rank()).address() + layout.landingAt(rank(), parity);
    }

    @Override
    public int rank() {
        return fabric.rank();
    }

    @Override
    public int size() {
        return fabric.size();
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
    public boolean rowsAreThere() {
        return false;
    }

    @Override
    public void awaitUnread(int call) {}

    @Override
    public void awaitReuse(int call, boolean both, GpuStream stream) {}

    @Override
    public void announce(int call, GpuStream stream) {
        steps.announce(call);
    }

    @Override
    public void awaitAnnounced(int peer, int call, GpuStream stream) {}

    /** Ranks on one GPU have grids that stand side by side and leave room for what makes rows. */
    @Override
    public void awaitSharers(int call, GpuStream stream) {}

    @Override
    public void ended(int call, GpuStream stream) {
        steps.queued(call);
    }

    // No peer copies into this rank's device memory.

    @Override
    public void pushed(int to, int flag, int lane, int call, GpuStream stream) {}

    @Override
    public boolean isPushed(int flag, int call) {
        return true;
    }

    @Override
    public void awaitPushed(int from, int lane, GpuStream stream) {}

    @Override
    public void awaitQueued(int call) {
        steps.awaitQueued(call);
    }

    @Override
    public void fail(Throwable cause) {
        fabric.fail(cause);
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
    public void worked() {
        fabric.worked();
    }

    @Override
    public void close() {
        pinned.close();
        region.close();
    }
}
