package dev.weft.cuda.exec;

import dev.weft.exec.host.StartWord;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Shards;
import dev.weft.process.WaitTime;
import java.util.concurrent.locks.LockSupport;

/**
 * Keeps the host threads of an operator's ranks in step, by words at the beginning of each rank's
 * part of a region:
 *
 * <pre>
 *   0  the latest call that this rank has announced, as in {@link StartWord}
 *  32  the latest call of which this rank has queued everything
 *  48  1 once this rank's work is drained, 2 once it has closed what it opened of its peers
 * 128  the rows of the latest calls
 * </pre>
 *
 * <p>No rank queues work that waits on the device before all ranks have announced the call, and no
 * rank has awaited a call before all have queued theirs. So nothing that a caller does between
 * calls waits for work that a peer has yet to queue, not even {@code cuMemFree}, which waits for
 * the whole device and holds up every thread of the process.
 *
 * <p>Used by the thread that calls the operator.
 */
public final class HostSteps {

    /** Where the rest of a part begins, which has other uses. */
    public static final int BYTES = 192;

    private static final int QUEUED_AT = 32;
    private static final int RELEASED_AT = 48;
    private static final int DRAINED = 1;
    private static final int UNMAPPED = 2;

    /** No rank starts a call before all have awaited the one before the last. */
    private static final int MOST_AHEAD = 2;

    /** Peers of a rank that has failed close within this time, or never. */
    private static final long RELEASE_LIMIT_NS = 5_000_000_000L;

    private static final long PARK_NS = 50_000;
    private static final int LOOKS_PER_CHECK = 1000;

    private final Transport fabric;
    private final Region region;
    private final StartWord starts;
    private final Awaited[] awaited;

    public HostSteps(Transport fabric, Region region) {
        this.fabric = fabric;
        this.region = region;
        this.starts = new StartWord(fabric, region, MOST_AHEAD);
        this.awaited = new Awaited[fabric.size()];
        for (int r = 0; r < awaited.length; r++) {
            awaited[r] = Awaited.of(Awaited.START, r).within(MOST_AHEAD);
        }
    }

    /** The name of the memory with the words, the same on every rank. */
    public String name() {
        return region.name();
    }

    public boolean isAnnounced(int rank, int call) {
        return starts.isStarted(rank, call);
    }

    /** Returns when every rank has announced the call; refuses one of other rows than theirs. */
    public void announce(int call, Shards shards) {
        starts.publish(call, shards);
        starts.await(call);
        starts.check(call, shards);
    }

    /** Tells the peers that all of this rank's work for the call is queued. */
    public void queued(int call) {
        // Release: pairs with the acquire in awaitQueued on every peer.
        fabric.publish(region, QUEUED_AT, call);
    }

    /** Returns when every rank has queued all that it does for the call. */
    public void awaitQueued(int call) {
        for (int r = 0; r < awaited.length; r++) {
            fabric.await(region, r, QUEUED_AT, call, awaited[r]);
        }
    }

    /**
     * Whether every rank has drained its work, within the deadline or, after a failure, a few
     * seconds.
     */
    public boolean awaitDrained(boolean failed) {
        return awaitStage(DRAINED, failed ? RELEASE_LIMIT_NS : Long.MAX_VALUE);
    }

    /** Whether every rank has closed what it opened of its peers; waits for a short time. */
    public boolean awaitUnmapped() {
        return awaitStage(UNMAPPED, RELEASE_LIMIT_NS);
    }

    /** By the words alone: the fabric's own waits end as soon as one rank has failed. */
    private boolean awaitStage(int stage, long mostNs) {
        fabric.publish(region, RELEASED_AT, stage);
        long limitNs = Math.min(mostNs, deadlineNs());
        long start = System.nanoTime();
        for (int r = 0; r < awaited.length; r++) {
            for (int looks = 1; !fabric.reached(region, r, RELEASED_AT, stage); looks++) {
                // A rank that died writes nothing any more, so no rank waits for it.
                boolean gone = looks % LOOKS_PER_CHECK == 0 && fabric.isGone(r);
                if (gone || System.nanoTime() - start > limitNs) {
                    return false;
                }
                LockSupport.parkNanos(PARK_NS);
            }
        }
        return true;
    }

    public long deadlineNs() {
        return WaitTime.nanoseconds(fabric.deadline());
    }
}
