package dev.weft.plan;

import dev.weft.plan.RankPlan.Storage;
import java.util.List;

/**
 * Counts, per rank, the ping-pong shards that are released: consumed, forwarded, and every shard of
 * an earlier step released as well. Without ping-pong buffers nothing is ever released.
 */
final class ShardReleases {

    private final int ranks;
    private final boolean isPingPong;

    /** Per rank and step: blocks to consume and chunks to forward before the shard is released. */
    private final int[][] uses;

    private final int[] released;

    ShardReleases(List<RankPlan> plans) {
        this.ranks = plans.size();
        this.isPingPong = plans.getFirst().storage() == Storage.PING_PONG;
        this.uses = new int[ranks][ranks];
        this.released = new int[ranks];
        if (isPingPong) {
            plans.forEach(this::countUses);
            for (int rank = 0; rank < ranks; rank++) {
                advance(rank);
            }
        }
    }

    private void countUses(RankPlan plan) {
        for (RowBlock block : plan.consumption()) {
            uses[plan.rank()][SlotCheck.step(plan.rank(), block.source(), ranks)]++;
        }
        for (Lane lane : plan.lanes()) {
            for (Transfer transfer : lane.transfers()) {
                int from = transfer.from();
                uses[from][SlotCheck.step(from, transfer.source(), ranks)]++;
            }
        }
    }

    /** How many remote shards {@code rank} has released. */
    int released(int rank) {
        return released[rank];
    }

    /** A block or a forward of a remote shard is done; whether that released a shard. */
    boolean used(int rank, int source) {
        if (!isPingPong) {
            return false;
        }
        uses[rank][SlotCheck.step(rank, source, ranks)]--;
        return advance(rank);
    }

    private boolean advance(int rank) {
        int before = released[rank];
        while (released[rank] + 1 < ranks && uses[rank][released[rank] + 1] == 0) {
            released[rank]++;
        }
        return released[rank] > before;
    }
}
