package dev.weft.plan;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Storage;
import dev.weft.plan.RankPlan.Transfer;
import java.util.List;

/**
 * Counts, per rank, the released ping-pong shards. A shard is released once it is consumed and
 * forwarded, and all shards before it are released. Without ping-pong buffers nothing is released.
 */
final class ShardReleases {

    private final int ranks;
    private final boolean isPingPong;

    /** Per rank and number: blocks to consume and chunks to forward before the release. */
    private final int[][] uses;

    /** Per rank and source: the number of its shard in the order of the rank's releases. */
    private final int[][] numbers;

    private final int[] released;

    ShardReleases(List<RankPlan> plans) {
        this.ranks = plans.size();
        this.isPingPong = plans.getFirst().storage() == Storage.PING_PONG;
        this.uses = new int[ranks][ranks];
        this.numbers = plans.stream().map(RankPlan::releaseNumbers).toArray(int[][]::new);
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
            uses[plan.rank()][numbers[plan.rank()][block.source()]]++;
        }
        for (Lane lane : plan.lanes()) {
            for (Transfer transfer : lane.transfers()) {
                int from = transfer.from();
                uses[from][numbers[from][transfer.source()]]++;
            }
        }
    }

    /** How many remote shards {@code rank} has released. */
    int released(int rank) {
        return released[rank];
    }

    /**
     * Notes that a block or a forward of a remote shard is done; returns whether that released a
     * shard.
     */
    boolean used(int rank, int source) {
        if (!isPingPong) {
            return false;
        }
        uses[rank][numbers[rank][source]]--;
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
