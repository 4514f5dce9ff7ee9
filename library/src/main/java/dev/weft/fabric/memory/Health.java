package dev.weft.fabric.memory;

import dev.weft.fabric.FabricException;
import dev.weft.fabric.FabricException.PeerFailedException;
import dev.weft.fabric.FailureReport;
import dev.weft.process.WaitTime;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.IntPredicate;
import java.util.function.IntToLongFunction;

/**
 * What one rank knows about the others: which are present, have left, failed or died, and whether
 * they make progress. Shared by the world's fabric and those of its subgroups. Thread-safe.
 */
public final class Health {

    private final MemoryRegion control;
    private final int self;
    private final IntPredicate alive;
    private final int ranks;
    private final Duration deadline;
    private final long deadlineNs;

    /** By world rank: its work when a blocked thread last looked, or -1. Accessed opaquely. */
    private final AtomicLongArray seenWork;

    /** By world rank: when that work was first seen. Accessed opaquely. */
    private final AtomicLongArray seenNs;

    /**
     * @param control the control blocks of the world's {@code ranks}
     * @param alive whether a rank of the world still runs; called a few times a second at most
     */
    public Health(
            MemoryRegion control, int ranks, int self, IntPredicate alive, Duration deadline) {
        this.control = control;
        this.ranks = ranks;
        this.self = self;
        this.alive = alive;
        this.deadline = deadline;
        this.deadlineNs = WaitTime.nanoseconds(deadline);
        this.seenWork = new AtomicLongArray(ranks);
        this.seenNs = new AtomicLongArray(ranks);
        for (int r = 0; r < ranks; r++) {
            seenWork.setPlain(r, -1);
        }
    }

    Duration deadline() {
        return deadline;
    }

    public long deadlineNs() {
        return deadlineNs;
    }

    int ranks() {
        return ranks;
    }

    private MemorySegment own() {
        return control.part(self);
    }

    private int state(int worldRank) {
        return Words.intAcquire(control.words(worldRank), ControlBlock.STATE_AT);
    }

    public synchronized void present() {
        if (state(self) != ControlBlock.FAILED) {
            Words.intVolatile(own(), ControlBlock.STATE_AT, ControlBlock.PRESENT);
        }
    }

    public void worked() {
        Words.longAdd(own(), ControlBlock.WORK_AT, 1);
    }

    /** Marks this rank as failed. The first cause stays: later failures are consequences. */
    public synchronized void fail(Throwable cause) {
        if (state(self) != ControlBlock.FAILED) {
            // A consequence is passed on with the rank that caused it, so that a third rank does
            // not blame this one.
            int causeRank = cause instanceof FabricException e ? e.peer() : self;
            ControlBlock.fail(own(), causeRank, reason(cause));
        }
    }

    private static String reason(Throwable cause) {
        if (cause instanceof PeerFailedException e) {
            return e.reason();
        }
        return cause.getMessage() == null ? cause.toString() : cause.getMessage();
    }

    public synchronized void leave() {
        if (state(self) != ControlBlock.FAILED) {
            Words.intVolatile(own(), ControlBlock.STATE_AT, ControlBlock.LEFT);
        }
    }

    /**
     * The total work done by the group's ranks: while it grows, nothing is stuck. Also notes whose
     * work has grown, for the error in which the wait may end.
     *
     * @param withOwn whether this rank's own work counts, as in a wait for another of its threads
     */
    public long workOf(Group group, boolean withOwn, long nowNs) {
        long sum = 0;
        for (int r = 0; r < group.size(); r++) {
            int peer = group.worldRank(r);
            if (withOwn || peer != self) {
                long work = work(peer);
                sum += work;
                if (work != seenWork.getOpaque(peer)) {
                    seenWork.setOpaque(peer, work);
                    seenNs.setOpaque(peer, nowNs);
                }
            }
        }
        return sum;
    }

    private long work(int worldRank) {
        return Words.longAcquire(control.words(worldRank), ControlBlock.WORK_AT);
    }

    public int ownState() {
        return state(self);
    }

    public long ownWork() {
        return work(self);
    }

    /** Writes the work counter of a rank on another host to its mirror. */
    public void peerWorked(int worldRank, long work) {
        Words.longRelease(control.words(worldRank), ControlBlock.WORK_AT, work);
    }

    /** Counts an arrival from a rank on another host as work of that rank. */
    public void peerMoved(int worldRank) {
        Words.longAdd(control.words(worldRank), ControlBlock.WORK_AT, 1);
    }

    public void peerFailed(int worldRank, int causeRank, String message) {
        ControlBlock.fail(control.words(worldRank), causeRank, message);
    }

    public void peerLeft(int worldRank) {
        Words.intVolatile(control.words(worldRank), ControlBlock.STATE_AT, ControlBlock.LEFT);
    }

    /** Whether the rank has left or failed. */
    public boolean hasEnded(int worldRank) {
        int state = state(worldRank);
        return state == ControlBlock.LEFT || state == ControlBlock.FAILED;
    }

    boolean hasLeft(int worldRank) {
        return state(worldRank) == ControlBlock.LEFT;
    }

    /** The world's number of a rank of the group that has failed, maybe this one, or -1. */
    int failedRank(Group group) {
        for (int r = 0; r < group.size(); r++) {
            if (state(group.worldRank(r)) == ControlBlock.FAILED) {
                return group.worldRank(r);
            }
        }
        return -1;
    }

    /** The error that a failed rank has left in its control block. */
    public PeerFailedException failureOf(int failed) {
        MemorySegment block = control.words(failed);
        int causeRank = ControlBlock.causeRank(block);
        boolean known = causeRank >= 0 && causeRank < ranks;
        return new PeerFailedException(
                self, known ? causeRank : failed, ControlBlock.failure(block));
    }

    /** The world's number of a rank of the group that has died, or -1. */
    int deadPeer(Group group) {
        for (int r = 0; r < group.size(); r++) {
            int peer = group.worldRank(r);
            // Presence is checked again afterwards: a rank that leaves or fails cleanly says so
            // before its process ends.
            if (peer != self && isPresent(peer) && !alive.test(peer) && isPresent(peer)) {
                return peer;
            }
        }
        return -1;
    }

    /** Whether the rank has left or its process has ended. */
    boolean isGone(int worldRank) {
        return hasLeft(worldRank) || worldRank != self && !alive.test(worldRank);
    }

    private boolean isPresent(int worldRank) {
        return state(worldRank) == ControlBlock.PRESENT;
    }

    /**
     * What is known about the group's other ranks, for an error.
     *
     * @param silentMs by world rank, as in {@link FailureReport.Peer}
     */
    List<FailureReport.Peer> peers(Group group, IntToLongFunction silentMs) {
        long now = System.nanoTime();
        List<FailureReport.Peer> peers = new ArrayList<>();
        for (int r = 0; r < group.size(); r++) {
            int peer = group.worldRank(r);
            if (peer != self) {
                peers.add(
                        new FailureReport.Peer(
                                peer,
                                stateOf(peer),
                                -1,
                                idleMs(peer, now),
                                silentMs.applyAsLong(peer)));
            }
        }
        return peers;
    }

    private long idleMs(int peer, long nowNs) {
        long seen = seenWork.getOpaque(peer);
        if (seen < 0) {
            return -1;
        }
        return work(peer) != seen ? 0 : Math.max(0, (nowNs - seenNs.getOpaque(peer)) / 1_000_000);
    }

    private FailureReport.State stateOf(int peer) {
        return switch (state(peer)) {
            case ControlBlock.PRESENT ->
                    // Checked again, as in deadPeer.
                    alive.test(peer) || !isPresent(peer)
                            ? FailureReport.State.PRESENT
                            : FailureReport.State.DEAD;
            case ControlBlock.LEFT -> FailureReport.State.LEFT;
            case ControlBlock.FAILED -> FailureReport.State.FAILED;
            default -> FailureReport.State.ABSENT;
        };
    }
}
