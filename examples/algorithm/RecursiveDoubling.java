// An all-gather of one's own: recursive doubling, or Bruck's where the ranks are no power of two.
// Run: see docs/algorithms.md

import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.Pacing;
import dev.weft.plan.PlanBuilder;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.RankPlan;
import java.util.List;

/** In log2(ranks) steps each rank hands on all that it has, every time twice as far. */
public final class RecursiveDoubling implements PlanWriter {

    @Override
    public String label() {
        return "recursive-doubling";
    }

    @Override
    public List<RankPlan> plans(Chunks chunks, int lanes, Hosts hosts) {
        int ranks = chunks.shards().ranks();
        PlanBuilder plan = new PlanBuilder(label(), chunks, ranks == 1 ? 0 : 1);
        if (hosts.count() > 1) {
            plan.pacing(Pacing.inSteps(32)); // over a network the last rows come late
        }
        for (int distance = 1; distance < ranks; distance *= 2) {
            for (int rank = 0; rank < ranks; rank++) {
                if (Integer.bitCount(ranks) == 1) {
                    exchange(plan, rank, distance);
                } else {
                    handBack(plan, rank, distance, ranks);
                }
            }
        }
        return plan.build();
    }

    /** Pairs at that distance exchange the shards of their groups of so many ranks. */
    private static void exchange(PlanBuilder plan, int rank, int distance) {
        int group = rank / distance * distance;
        for (int source = group; source < group + distance; source++) {
            plan.put(rank, 0, rank ^ distance, source);
        }
    }

    /** Bruck: a rank has its own shard and those that follow, and hands them back. */
    private static void handBack(PlanBuilder plan, int rank, int distance, int ranks) {
        int to = Math.floorMod(rank - distance, ranks);
        for (int i = 0; i < Math.min(distance, ranks - distance); i++) {
            plan.put(rank, 0, to, (rank + i) % ranks);
        }
    }
}
