package dev.weft.plan;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.RankPlan.Transfer.Initiator;
import java.util.BitSet;
import java.util.List;

/**
 * Checks forwards: every chunk can be traced back to its owner, and a lane that both brings a chunk
 * to a rank and forwards it from there does so in that order. Only a sender on another host can see
 * that a chunk to be forwarded has arrived. {@link DryRun} checks the order between lanes of
 * different ranks.
 *
 * @param reachesOwner per receiver and tag: the way back to the owner is known to be complete
 */
record RouteCheck(TransferIndex index, Chunks chunks, BitSet reachesOwner) {

    static void check(List<RankPlan> plans, TransferIndex index, Hosts hosts) {
        RouteCheck routes = new RouteCheck(index, plans.getFirst().chunks(), new BitSet());
        for (RankPlan plan : plans) {
            for (Lane lane : plan.lanes()) {
                for (Transfer transfer : lane.transfers()) {
                    if (transfer.isForward()) {
                        checkSeenAtItsSender(plan, transfer, hosts);
                        routes.checkOrderWithinLane(transfer);
                        routes.checkReachesOwner(transfer);
                    }
                }
            }
        }
    }

    private static void checkSeenAtItsSender(RankPlan plan, Transfer forward, Hosts hosts) {
        if (forward.initiator() != Initiator.RECEIVER) {
            return;
        }
        if (plan.storage() == RankPlan.Storage.PING_PONG) {
            throw new PlanException(
                    plan.rank(), forward, "is got from a buffer whose holder may release it");
        }
        if (!hosts.shareMemory(forward.from(), forward.to())) {
            throw new PlanException(
                    plan.rank(),
                    forward,
                    "is got from rank %s of another host, which does not own it"
                            .formatted(forward.from()));
        }
    }

    private void checkOrderWithinLane(Transfer forward) {
        int tag = forward.tag();
        Transfer arrival = index.delivering(forward.from(), tag);
        boolean isSameLane =
                TransferIndex.initiator(arrival) == TransferIndex.initiator(forward)
                        && index.lane(forward.from(), tag) == index.lane(forward.to(), tag);
        if (isSameLane && index.position(forward.to(), tag) < index.position(forward.from(), tag)) {
            throw new PlanException(
                    forward.from(), forward, "is forwarded before it arrives in the same lane");
        }
    }

    private void checkReachesOwner(Transfer forward) {
        int ranks = chunks.shards().ranks();
        Transfer step = forward;
        int hops = 0;
        while (step.isForward() && !reachesOwner.get(key(step))) {
            step = index.delivering(step.from(), step.tag());
            hops++;
            if (hops > ranks) {
                throw new PlanException(
                        forward.from(),
                        forward,
                        "is forwarded in a circle that its owner is not in");
            }
        }
        // Marked so that a long path is walked once, not once per rank on it.
        for (Transfer known = forward; known != step; ) {
            reachesOwner.set(key(known));
            known = index.delivering(known.from(), known.tag());
        }
    }

    private int key(Transfer transfer) {
        return transfer.to() * chunks.total() + transfer.tag();
    }
}
