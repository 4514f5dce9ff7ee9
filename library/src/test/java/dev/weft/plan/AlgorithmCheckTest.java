package dev.weft.plan;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Plans that gather, but not as well as their algorithm promises. */
class AlgorithmCheckTest {

    private static final Chunks CHUNKS = Chunks.byRows(Shards.of(4, 4, 4, 4), 6, 1, 2);

    @Test
    void findsAnOverloadedLink() {
        List<RankPlan> ring = PlanCases.plans(Algorithm.RING, CHUNKS, 1);
        List<RankPlan> mesh = PlanCases.plans(Algorithm.MESH_PUSH, CHUNKS, 1);
        overloads(
                Algorithm.MESH_PUSH,
                ring,
                "rank 0, source 3, chunk 0: overloads the link from rank 0 to rank 1: mesh-push"
                        + " needs at most 4.0 rows there");
        overloads(
                Algorithm.RING,
                mesh,
                "rank 0, source 0, chunk 0: overloads the link from rank 0 to rank 2: ring needs at"
                        + " most 0.0 rows there");
        overloads(
                Algorithm.BIDIRECTIONAL_RING,
                ring,
                "rank 0, source 2, chunk 0: overloads the link from rank 0 to rank 1:"
                        + " bidirectional-ring needs at most 8.0 rows there");
        overloads(
                Algorithm.BIDIRECTIONAL_RING,
                mesh,
                "overloads the link from rank 0 to rank 2: bidirectional-ring needs at most 0.0");
        overloads(
                Algorithm.SEQUENTIAL,
                ring,
                "overloads the link from rank 0 to rank 1: sequential needs at most 4.0");
    }

    private static void overloads(Algorithm algorithm, List<RankPlan> plans, String message) {
        PlanChecker.check(plans);
        refuses(algorithm, plans, message);
    }

    private static void refuses(Algorithm algorithm, List<RankPlan> plans, String message) {
        PlanException fault =
                assertThrows(PlanException.class, () -> AlgorithmCheck.check(algorithm, plans));
        assertTrue(fault.getMessage().contains(message), fault.getMessage());
    }

    @Test
    void findsSequentialConsumptionOutOfNaturalOrder() {
        List<RankPlan> plans = PlanCases.plans(Algorithm.SEQUENTIAL, CHUNKS, 1);
        refuses(
                Algorithm.SEQUENTIAL,
                PlanEdits.editConsumption(
                        plans,
                        1,
                        blocks -> {
                            Collections.swap(blocks, 1, 2);
                            return blocks;
                        }),
                "rank 1: consumes out of natural order");
    }

    @Test
    void findsAGatherThatComesFirst() {
        List<RankPlan> plans = PlanCases.plans(Algorithm.MESH_PULL, CHUNKS, 1);
        refuses(
                Algorithm.MESH_PULL,
                plans.stream().map(p -> p.with(p.name(), Pacing.GATHER_FIRST)).toList(),
                "rank 0: MESH_PULL with Pacing[gatherFirst=true");
    }
}
