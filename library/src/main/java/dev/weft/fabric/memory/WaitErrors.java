package dev.weft.fabric.memory;

import dev.weft.fabric.FabricException.CorruptSignalException;
import dev.weft.fabric.FabricException.PeerFailedException;
import dev.weft.fabric.FabricException.PeerLostException;
import dev.weft.fabric.FabricException.StallException;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Awaited;
import dev.weft.process.TaskThread;
import java.util.List;

/**
 * Creates the errors for waits of one rank in one fabric. They number ranks as in the world.
 * Thread-safe.
 */
final class WaitErrors {

    private final MemoryFabric fabric;

    WaitErrors(MemoryFabric fabric) {
        this.fabric = fabric;
    }

    private int self() {
        return fabric.worldRank(fabric.rank());
    }

    private int source(Awaited what) {
        return what.source() < 0 ? -1 : fabric.worldRank(what.source());
    }

    CorruptSignalException corrupt(int seen, int value, Awaited what) {
        CorruptSignalException failure =
                new CorruptSignalException(
                        self(),
                        fabric.worldRank(what.writer()),
                        source(what),
                        what.chunk(),
                        describe(what, value),
                        seen,
                        value,
                        value + what.lead());
        failure.attach(report(what, value, 0));
        return failure;
    }

    PeerLostException lost(int peer, String how, Awaited what, int value) {
        return new PeerLostException(self(), peer, how, describe(what, value));
    }

    StallException stalled(Awaited what, int value) {
        // A wait for a lane of this rank is a wait for the rank that the lane waits for. A thread
        // that sums and waits for a peer gives up before those that wait for it.
        boolean ownLane =
                what.writer() == fabric.rank()
                        && what.source() >= 0
                        && !what.what().equals(Awaited.OWN_THREAD);
        int awaited = fabric.worldRank(ownLane ? what.source() : what.writer());
        int silent = fabric.silentPeer();
        return new StallException(
                self(),
                silent < 0 ? awaited : silent,
                source(what),
                what.chunk(),
                describe(what, value),
                fabric.deadline(),
                silent >= 0);
    }

    /** The error of a rank that enters a collective call after it has been failed. */
    PeerFailedException failedBefore() {
        PeerFailedException failure = fabric.health.failureOf(self());
        failure.attach(FailureReport.of(self(), List.of(), peers()));
        return failure;
    }

    /** The report of a wait that ends with an error. */
    FailureReport report(Awaited what, int value, long waitedNs) {
        // Each group counts its own collective calls, so the report names the group.
        String group = what.what().equals(Awaited.COLLECTIVE) ? fabric.id : "";
        List<FailureReport.Wait> waits = List.of(wait(what, value, waitedNs));
        return new FailureReport(self(), group, -1, waits, List.of(), List.of(), peers());
    }

    private FailureReport.Wait wait(Awaited what, int value, long waitedNs) {
        String prefix = "weft-" + self() + "-";
        String thread = TaskThread.currentName();
        return new FailureReport.Wait(
                thread.startsWith(prefix) ? thread.substring(prefix.length()) : thread,
                what.what(),
                fabric.worldRank(what.writer()),
                source(what),
                what.chunk(),
                value,
                waitedNs / 1_000_000);
    }

    private List<FailureReport.Peer> peers() {
        return fabric.health.peers(fabric.group, fabric::silentMs);
    }

    /** A description of what is awaited. */
    String describe(Awaited what, int value) {
        return wait(what, value, 0).awaited();
    }
}
