// A user's own all-gather: recursive doubling, or Bruck's if the number of ranks is no power of two.
// Run: see docs/algorithms.md

import dev.weft.plan.GatherRequest;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.PlanBuilder;
import dev.weft.plan.step.StepPlan;
import java.util.List;

/** In ceil(log2(ranks)) rounds each rank sends all that it has, every time twice as far. */
public final class RecursiveDoubling implements GatherWriter {

    @Override
    public String label() {
        return "recursive-doubling";
    }

    @Override
    public List<StepPlan> plans(GatherRequest request) {
        int ranks = request.ranks();
        PlanBuilder plan = new PlanBuilder(label(), request, ranks == 1 ? 0 : 1);
        if (request.hosts().count() > 1) {
            plan.leastRows(32); // start on 32 rows or more while the rest is still arriving
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

    /** Partners at that distance swap all shards of their groups of {@code distance} ranks. */
    private static void exchange(PlanBuilder plan, int rank, int distance) {
        int group = rank / distance * distance;
        for (int source = group; source < group + distance; source++) {
            plan.put(rank, 0, rank ^ distance, source);
        }
    }

    /** Bruck: a rank has its own shard and the next ones, and sends them that far back. */
    private static void handBack(PlanBuilder plan, int rank, int distance, int ranks) {
        int to = Math.floorMod(rank - distance, ranks);
        for (int i = 0; i < Math.min(distance, ranks - distance); i++) {
            plan.put(rank, 0, to, (rank + i) % ranks);
        }
    }
}
