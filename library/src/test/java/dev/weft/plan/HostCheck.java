package dev.weft.plan;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Transfer;
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

    static void check(List<RankPlan> plans, Hosts hosts) {
        HostCheck check = new HostCheck(plans.getFirst().chunks(), hosts);
        for (RankPlan plan : plans) {
            for (Lane lane : plan.lanes()) {
                check.checkLane(plan.rank(), lane);
            }
        }
    }

    private void checkLane(int rank, Lane lane) {
        for (Transfer transfer : lane.transfers()) {
            boolean crosses = crosses(transfer);
            if (crosses != crosses(lane.transfers().getFirst())) {
                throw new PlanException(
                        rank,
                        transfer,
                        "lane " + lane.index() + " goes both within and between hosts");
            }
            if (crosses) {
                checkCrossing(rank, transfer);
            }
        }
    }

    private boolean crosses(Transfer transfer) {
        return !hosts.shareMemory(transfer.from(), transfer.to());
    }

    private void checkCrossing(int rank, Transfer transfer) {
        int host = hosts.hostOf(transfer.to());
        if (host == hosts.hostOf(transfer.source())) {
            throw new PlanException(rank, transfer, "crosses the network to its owner's host");
        }
        int key = host * chunks.total() + transfer.tag();
        if (entered.get(key)) {
            throw new PlanException(
                    rank, transfer, "crosses the network to host " + host + " more than once");
        }
        entered.set(key);
    }
}
