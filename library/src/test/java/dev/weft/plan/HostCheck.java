package dev.weft.plan;

import dev.weft.plan.GatherView.Lane;
import dev.weft.plan.GatherView.Move;
import java.util.BitSet;
import java.util.List;

/**
 * Hierarchical plans: what crosses the network does so once for each host, and in lanes that carry
 * nothing else; {@link AlgorithmCheck} has the list.
 */
final class HostCheck {

    private final Chunks chunks;
    private final Hosts hosts;

    /** Per host and tag: the chunk has crossed the network to the host. */
    private final BitSet entered = new BitSet();

    private HostCheck(Chunks chunks, Hosts hosts) {
        this.chunks = chunks;
        this.hosts = hosts;
    }

    static void check(List<GatherView> plans, Hosts hosts) {
        HostCheck check = new HostCheck(plans.getFirst().chunks(), hosts);
        for (GatherView plan : plans) {
            for (Lane lane : plan.lanes()) {
                check.checkLane(plan.rank(), lane);
            }
        }
    }

    private void checkLane(int rank, Lane lane) {
        for (Move transfer : lane.moves()) {
            boolean crosses = crosses(transfer);
            if (crosses != crosses(lane.moves().getFirst())) {
                throw fault(rank, transfer, "goes both within and between hosts");
            }
            if (crosses) {
                checkCrossing(rank, transfer);
            }
        }
    }

    private static IllegalArgumentException fault(int rank, Move transfer, String what) {
        return new IllegalArgumentException("rank %d: %s %s".formatted(rank, transfer, what));
    }

    private boolean crosses(Move transfer) {
        return !hosts.shareMemory(transfer.from(), transfer.to());
    }

    private void checkCrossing(int rank, Move transfer) {
        int host = hosts.hostOf(transfer.to());
        if (host == hosts.hostOf(transfer.source())) {
            throw fault(rank, transfer, "crosses the network to its owner's host");
        }
        int key = host * chunks.total() + chunks.tag(transfer.source(), transfer.chunk());
        if (entered.get(key)) {
            throw fault(rank, transfer, "crosses the network to host " + host + " more than once");
        }
        entered.set(key);
    }
}
