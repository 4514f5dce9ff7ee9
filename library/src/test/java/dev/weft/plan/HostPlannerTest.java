package dev.weft.plan;

import static dev.weft.plan.PlannerTest.assertPlan;
import static dev.weft.plan.PlannerTest.chunks;
import static dev.weft.plan.PlannerTest.consumption;
import static dev.weft.plan.PlannerTest.count;
import static dev.weft.plan.PlannerTest.refuses;
import static dev.weft.plan.PlannerTest.transfers;
import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.plan.GatherView.Move;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Plans over hosts, small enough to read; written as in {@link PlannerTest}. */
class HostPlannerTest {

    @Test
    void meshPushCrossesOnceAndForwards() {
        GatherView plan = PlanCases.plan(Algorithm.MESH_PUSH, chunks(4, 2), 1, 0, Hosts.of(2, 2));
        assertEquals(
                List.of("0.0 0>2, 0.1 0>2", "0.0 0>1, 0.1 0>1, 2.0 0>1, 2.1 0>1"),
                transfers(plan.lanes()));
        assertEquals("0.0, 0.1, 1.0, 1.1, 2.0, 3.0, 2.1, 3.1", consumption(plan));
    }

    @Test
    void meshPullGetsWhatAMateHasGot() {
        GatherView plan = PlanCases.plan(Algorithm.MESH_PULL, chunks(4, 2), 1, 0, Hosts.of(2, 2));
        assertEquals(
                List.of("2.0 2>0, 2.1 2>0", "1.0 1>0, 1.1 1>0, 3.0 1>0, 3.1 1>0"),
                transfers(plan.lanes()));
        assertEquals("0.0, 0.1, 1.0, 1.1, 2.0, 3.0, 2.1, 3.1", consumption(plan));
        assertEquals(new Move(1, 0, 3, 1, true, 0, 1), plan.lanes().getLast().moves().getLast());
    }

    @Test
    void ringGoesFromGatewayToGateway() {
        GatherView plan = PlanCases.plan(Algorithm.RING, chunks(6, 1), 1, 2, Hosts.of(2, 2, 2));
        assertPlan(
                plan,
                List.of("2.0 2>4, 0.0 2>4", "2.0 2>3, 0.0 2>3, 4.0 2>3"),
                "2.0, 3.0, 0.0, 1.0, 4.0, 5.0");
    }

    @Test
    void aLoneGatewayForwardsTheShardsOfAHostSideBySide() {
        Hosts hosts = Hosts.of(2, 1, 2);
        GatherView lone = PlanCases.plan(Algorithm.RING, chunks(5, 2), 1, 2, hosts);
        assertEquals(
                List.of("2.0 2>3, 2.1 2>3, 0.0 2>3, 1.0 2>4, 0.1 2>3, 1.1 2>4", ""),
                transfers(lone.lanes()));
        // Rank 2 sends its own shard to rank 3 before anything to rank 4.
        GatherView next = PlanCases.plan(Algorithm.RING, chunks(5, 2), 1, 3, hosts);
        assertEquals("3.0, 3.1, 4.0, 4.1, 2.0, 2.1, 0.0, 1.0, 0.1, 1.1", consumption(next));
    }

    @Test
    void bidirectionalRingHalvesTheFarthestHost() {
        Hosts hosts = Hosts.of(2, 2, 2, 2);
        GatherView plan = PlanCases.plan(Algorithm.BIDIRECTIONAL_RING, chunks(8, 2), 1, 0, hosts);
        assertEquals(
                List.of(
                        "0.0 0>2, 0.1 0>2, 6.0 0>2",
                        "0.0 0>6, 0.1 0>6, 2.1 0>6",
                        "0.0 0>1, 0.1 0>1, 6.0 0>1, 2.0 0>1, 6.1 0>1, 2.1 0>1, 4.0 0>1, 4.1 0>1"),
                transfers(plan.lanes()));
        assertEquals(
                "0.0, 0.1, 1.0, 1.1, 6.0, 2.0, 7.0, 3.0, 6.1, 2.1, 7.1, 3.1, 4.0, 4.1, 5.0, 5.1",
                consumption(plan));
    }

    @Test
    void memoryLanesShareMatesOrSegments() {
        Hosts hosts = Hosts.of(3, 1, 2);
        GatherView plan = PlanCases.plan(Algorithm.MESH_PUSH, chunks(6, 2), 4, 0, hosts);
        assertEquals(
                List.of(
                        "0.0 0>3, 0.1 0>3",
                        "0.0 0>4, 0.1 0>4",
                        "0.0 0>1, 0.1 0>1, 4.0 0>1, 3.0 0>1, 4.1 0>1, 3.1 0>1",
                        "0.0 0>2, 0.1 0>2, 4.0 0>2, 3.0 0>2, 4.1 0>2, 3.1 0>2"),
                transfers(plan.lanes()));
        GatherView pair = PlanCases.plan(Algorithm.MESH_PUSH, chunks(6, 2), 4, 4, hosts);
        assertEquals(
                List.of("4.0 4>5, 3.0 4>5, 2.0 4>5, 0.1 4>5", "4.1 4>5, 0.0 4>5, 3.1 4>5, 2.1 4>5"),
                transfers(pair.lanes().subList(2, 4)));
    }

    @Test
    void lanesThatTheNetworkCannotUseGoToMemory() {
        GatherView plan =
                PlanCases.plan(Algorithm.MESH_PUSH, chunks(6, 1), 6, 0, Hosts.of(2, 2, 2));
        assertEquals(
                List.of("0.0 0>2", "0.0 0>4", "0.0 0>1", "4.0 0>1", "2.0 0>1", ""),
                transfers(plan.lanes()));
    }

    @Test
    void laneCounts() {
        Hosts hosts = Hosts.of(2, 2, 1);
        assertEquals(2, Planner.lanes(Algorithm.RING, hosts, 1));
        assertEquals(3, Planner.lanes(Algorithm.BIDIRECTIONAL_RING, hosts, 1));
        assertEquals(2, Planner.lanes(Algorithm.MESH_PUSH, hosts, 1));
        assertEquals(7, Planner.lanes(Algorithm.MESH_PULL, hosts, 7));
        assertEquals(4, Planner.lanes(Algorithm.SEQUENTIAL, hosts, 7));
        assertEquals(1, Planner.lanes(Algorithm.RING, Hosts.one(4), 1));
        assertEquals(1, Planner.lanes(Algorithm.RING, Hosts.apart(4), 1));
        assertEquals(0, Planner.lanes(Algorithm.DIRECT, Hosts.one(4), 1));
    }

    @Test
    void onePlanOfALargeGroupCostsOnlyItsOwnTransfers() {
        Hosts hosts = new Hosts(Collections.nCopies(512, 8));
        int ranks = hosts.ranks();
        Chunks chunks = Chunks.byRows(Shards.even(16L * ranks, ranks), 64, 1, 4);
        for (Algorithm algorithm : PlanCases.hierarchicalAlgorithms()) {
            GatherView plan = PlanCases.plan(algorithm, chunks, 4, 77, hosts);
            assertEquals(16 * (ranks - 1), count(plan.lanes()), algorithm.label());
            assertEquals(4 * ranks, plan.consumption().size(), algorithm.label());
        }
    }

    @Test
    void refusesWhatHasNoPlan() {
        refuses(
                "direct needs ranks that share memory: these lie on 2 hosts of 2+1 ranks",
                () -> PlanCases.plan(Algorithm.DIRECT, chunks(3, 1), 1, 0, Hosts.of(2, 1)));
        refuses("these lie on 2 hosts", () -> Planner.lanes(Algorithm.DIRECT, Hosts.apart(2), 1));
        refuses(
                "hosts of 2+1 ranks for 4 shards",
                () -> PlanCases.plan(Algorithm.RING, chunks(4, 1), 1, 0, Hosts.of(2, 1)));
        refuses("0 lanes", () -> Planner.lanes(Algorithm.RING, Hosts.of(2, 1), 0));
        refuses("algorithm auto", () -> Planner.lanes(Algorithm.AUTO, Hosts.of(2, 1), 1));
    }
}
