package dev.weft.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Storage;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.RankPlan.Transfer.Initiator;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** Plans small enough to read. A transfer reads "source.chunk from&gt;to", a block "source.row". */
class PlannerTest {

    @Test
    void ringSendsItsOwnShardAndThenForwards() {
        RankPlan plan = PlanCases.plan(Algorithm.RING, chunks(3, 2), 1, 0);
        assertEquals(Storage.GATHERED, plan.storage());
        assertPlan(
                plan,
                List.of("0.0 0>1, 0.1 0>1, 2.0 0>1, 2.1 0>1"),
                List.of("2.0 2>0, 2.1 2>0, 1.0 2>0, 1.1 2>0"),
                "0.0, 0.1, 2.0, 2.1, 1.0, 1.1");
        assertEquals(
                new Transfer(0, 1, 2, 1, 5, Initiator.SENDER, 2, 0),
                plan.lanes().getFirst().transfers().getLast());
    }

    @Test
    void ringLanesCarrySegmentsInTurn() {
        Chunks chunks = Chunks.byRows(Shards.of(5, 5), 4, 1, 2);
        RankPlan plan = PlanCases.plan(Algorithm.RING, chunks, 2, 0);
        assertEquals(
                List.of("0.0 0>1, 0.1 0>1, 0.4 0>1", "0.2 0>1, 0.3 0>1"), transfers(plan.lanes()));
        assertEquals("0.0, 0.2, 0.4, 1.0, 1.2, 1.4", consumption(plan));
    }

    @Test
    void bidirectionalRingTakesTheShorterWay() {
        RankPlan plan = PlanCases.plan(Algorithm.BIDIRECTIONAL_RING, chunks(5, 1), 1, 0);
        assertPlan(
                plan,
                List.of("0.0 0>1, 4.0 0>1", "0.0 0>4, 1.0 0>4"),
                List.of("4.0 4>0, 3.0 4>0", "1.0 1>0, 2.0 1>0"),
                "0.0, 4.0, 1.0, 3.0, 2.0");
    }

    @Test
    void bidirectionalRingHalvesTheFarthestShard() {
        RankPlan plan = PlanCases.plan(Algorithm.BIDIRECTIONAL_RING, chunks(4, 3), 2, 0);
        assertEquals(
                List.of(
                        "0.0 0>1, 0.1 0>1, 0.2 0>1, 3.0 0>1, 3.1 0>1",
                        "0.0 0>3, 0.1 0>3, 0.2 0>3, 1.2 0>3"),
                transfers(plan.lanes()));
        assertEquals(
                "0.0, 0.1, 0.2, 3.0, 1.0, 3.1, 1.1, 3.2, 1.2, 2.0, 2.2, 2.1", consumption(plan));
    }

    @Test
    void bidirectionalRingOfTwoSplitsEveryShard() {
        RankPlan plan = PlanCases.plan(Algorithm.BIDIRECTIONAL_RING, chunks(2, 5), 3, 1);
        assertEquals(
                List.of("1.0 1>0, 1.2 1>0", "1.1 1>0", "1.3 1>0, 1.4 1>0"),
                transfers(plan.lanes()));
    }

    @Test
    void meshPushServesPeersFromItsSuccessorOn() {
        RankPlan plan = PlanCases.plan(Algorithm.MESH_PUSH, chunks(4, 1), 1, 1);
        assertPlan(
                plan,
                List.of("1.0 1>2, 1.0 1>3, 1.0 1>0"),
                List.of("0.0 0>1", "3.0 3>1", "2.0 2>1"),
                "1.0, 0.0, 3.0, 2.0");
    }

    @Test
    void meshPushIsConsumedInTheOrderInWhichPeersGetRoundToIt() {
        RankPlan shared = PlanCases.plan(Algorithm.MESH_PUSH, chunks(4, 2), 1, 0);
        assertEquals("0.0, 0.1, 3.0, 3.1, 2.0, 2.1, 1.0, 1.1", consumption(shared));
        RankPlan twoLanes = PlanCases.plan(Algorithm.MESH_PUSH, chunks(4, 2), 2, 0);
        assertEquals("0.0, 0.1, 3.0, 3.1, 2.0, 2.1, 1.0, 1.1", consumption(twoLanes));
        RankPlan ample = PlanCases.plan(Algorithm.MESH_PUSH, chunks(4, 2), 3, 0);
        assertEquals("0.0, 0.1, 3.0, 2.0, 1.0, 3.1, 2.1, 1.1", consumption(ample));
    }

    /** One chunk after the other, whatever peer it is for. */
    @Test
    void meshPushDealsChunksToFewerLanesThanPeersInTurn() {
        RankPlan plan = PlanCases.plan(Algorithm.MESH_PUSH, chunks(4, 3), 2, 0);
        assertEquals(
                List.of(
                        "0.0 0>1, 0.2 0>1, 0.1 0>2, 0.0 0>3, 0.2 0>3",
                        "0.1 0>1, 0.0 0>2, 0.2 0>2, 0.1 0>3"),
                transfers(plan.lanes()));
        assertEquals(
                List.of(
                        "3.0 3>0, 3.2 3>0", "3.1 3>0",
                        "2.1 2>0", "2.0 2>0, 2.2 2>0",
                        "1.0 1>0, 1.2 1>0", "1.1 1>0"),
                transfers(plan.arrivals()));
    }

    @Test
    void meshLanesOfOnePeerTakeContiguousRanges() {
        RankPlan plan = PlanCases.plan(Algorithm.MESH_PUSH, chunks(3, 3), 5, 0);
        assertEquals(
                List.of("0.0 0>1", "0.1 0>1, 0.2 0>1", "0.0 0>2", "0.1 0>2, 0.2 0>2"),
                transfers(plan.lanes()));
        assertEquals(List.of(0, 1, 2, 3), plan.arrivals().stream().map(Lane::index).toList());
    }

    @Test
    void meshPullReadsFromItsSuccessorOn() {
        RankPlan plan = PlanCases.plan(Algorithm.MESH_PULL, chunks(4, 1), 2, 1);
        assertEquals(List.of("2.0 2>1, 0.0 0>1", "3.0 3>1"), transfers(plan.lanes()));
        assertEquals(plan.lanes(), plan.arrivals());
        assertEquals("1.0, 2.0, 3.0, 0.0", consumption(plan));
        assertEquals(
                new Transfer(2, 1, 2, 0, 2, Initiator.RECEIVER, 2, 0),
                plan.lanes().getFirst().transfers().getFirst());
    }

    @Test
    void sequentialPullsAndConsumesInNaturalOrder() {
        RankPlan plan = PlanCases.plan(Algorithm.SEQUENTIAL, chunks(3, 2), 1, 1);
        assertEquals(PlanCases.plan(Algorithm.MESH_PULL, chunks(3, 2), 1, 1).lanes(), plan.lanes());
        assertEquals("0.0, 0.1, 1.0, 1.1, 2.0, 2.1", consumption(plan));
    }

    @Test
    void directMovesNothing() {
        RankPlan plan = PlanCases.plan(Algorithm.DIRECT, chunks(3, 2), 4, 1);
        assertEquals(Storage.IN_PLACE, plan.storage());
        assertEquals(List.of(), plan.lanes());
        assertEquals(List.of(), plan.arrivals());
        assertEquals("1.0, 1.1, 2.0, 2.1, 0.0, 0.1", consumption(plan));
    }

    @Test
    void pingPongRingAlternatesBuffersAndAsksForCredit() {
        RankPlan plan = PlanCases.pingPongRing(chunks(5, 1), 2);
        assertEquals("ring", plan.name());
        assertEquals(List.of(1, 0, 4, 3), plan.releases());
        assertEquals(Storage.PING_PONG, plan.storage());
        List<Transfer> sent = plan.lanes().getFirst().transfers();
        assertEquals(List.of(2, 1, 0, 4), sent.stream().map(Transfer::source).toList());
        assertEquals(List.of(1, 0, 1, 0), sent.stream().map(Transfer::slot).toList());
        assertEquals(List.of(0, 0, 1, 2), sent.stream().map(Transfer::credit).toList());
        assertEquals("2.0, 1.0, 0.0, 4.0, 3.0", consumption(plan));
    }

    @Test
    void lanesOfAPingPongRingCarryTheirSegmentsOfEveryShard() {
        RankPlan plan = PlanCases.pingPongPlans(chunks(4, 3), 2).get(1);
        assertEquals(
                List.of(
                        "1.0 1>2, 1.2 1>2, 0.0 1>2, 0.2 1>2, 3.0 1>2, 3.2 1>2",
                        "1.1 1>2, 0.1 1>2, 3.1 1>2"),
                transfers(plan.lanes()));
        // Lane 1 is ahead of lane 0, but no step is consumed before the one whose buffer it takes.
        assertEquals(
                List.of(1, 1, 1, 0, 0, 0, 3, 3, 3, 2, 2, 2),
                plan.consumption().stream().map(RankPlan.RowBlock::source).toList());
    }

    @Test
    void anEmptyShardKeepsItsStepInThePingPongRing() {
        RankPlan plan = PlanCases.pingPongRing(Chunks.byRows(Shards.of(1, 0, 1, 1), 1, 1, 1), 2);
        List<Transfer> sent = plan.lanes().getFirst().transfers();
        assertEquals(List.of(2, 0), sent.stream().map(Transfer::source).toList());
        assertEquals(List.of(1, 1), sent.stream().map(Transfer::slot).toList());
        assertEquals(List.of(0, 1), sent.stream().map(Transfer::credit).toList());
    }

    @Test
    void oneRankNeedsNoLanes() {
        for (Algorithm algorithm : PlanCases.algorithms()) {
            RankPlan plan = PlanCases.plan(algorithm, chunks(1, 3), 4, 0);
            assertEquals(List.of(), plan.lanes());
            assertEquals("0.0, 0.1, 0.2", consumption(plan));
        }
        assertEquals(List.of(), PlanCases.pingPongRing(chunks(1, 3), 0).lanes());
    }

    @Test
    void laneCounts() {
        assertEquals(3, Planner.lanes(Algorithm.RING, Hosts.one(4), 3));
        assertEquals(2, Planner.lanes(Algorithm.BIDIRECTIONAL_RING, Hosts.one(4), 1));
        assertEquals(5, Planner.lanes(Algorithm.BIDIRECTIONAL_RING, Hosts.one(4), 5));
        assertEquals(2, Planner.lanes(Algorithm.MESH_PUSH, Hosts.one(4), 2));
        assertEquals(6, Planner.lanes(Algorithm.MESH_PULL, Hosts.one(4), 8));
        assertEquals(3, Planner.lanes(Algorithm.SEQUENTIAL, Hosts.one(4), 5));
        assertEquals(0, Planner.lanes(Algorithm.DIRECT, Hosts.one(4), 5));
        assertEquals(0, Planner.lanes(Algorithm.RING, Hosts.one(1), 5));
    }

    @Test
    void onePlanOfALargeGroupCostsOnlyItsOwnTransfers() {
        int ranks = 4096;
        Chunks chunks = Chunks.byRows(Shards.even(16L * ranks, ranks), 64, 1, 4);
        for (Algorithm algorithm : PlanCases.algorithms()) {
            RankPlan plan = PlanCases.plan(algorithm, chunks, 3, 77);
            boolean moves = algorithm != Algorithm.DIRECT;
            assertEquals(moves ? 16 * (ranks - 1) : 0, count(plan.arrivals()), algorithm.label());
            assertEquals(4 * ranks, plan.consumption().size(), algorithm.label());
        }
    }

    @Test
    void refusesWhatHasNoPlan() {
        refuses("algorithm auto", () -> PlanCases.plan(Algorithm.AUTO, chunks(2, 1), 1, 0));
        refuses("algorithm auto", () -> Planner.lanes(Algorithm.AUTO, Hosts.one(2), 1));
        refuses("0 lanes", () -> PlanCases.plan(Algorithm.RING, chunks(2, 1), 0, 0));
        refuses("rank 2 of 2 ranks", () -> PlanCases.plan(Algorithm.RING, chunks(2, 1), 1, 2));
        refuses(
                "rank -1 of 2 ranks",
                () -> Planner.pingPongRing(chunks(2, 1), 1, -1, Hosts.one(2)));
        refuses("0 lanes", () -> PlanCases.pingPongPlans(chunks(2, 1), 0));
    }

    static void refuses(String message, Runnable call) {
        var refused = assertThrows(IllegalArgumentException.class, call::run);
        assertTrue(refused.getMessage().contains(message), refused.getMessage());
    }

    /** The same number of rows on every rank; every row is a chunk, a block and a segment. */
    static Chunks chunks(int ranks, int rowsPerRank) {
        return Chunks.byRows(Shards.even((long) ranks * rowsPerRank, ranks), 4, 1, 1);
    }

    static int count(List<Lane> lanes) {
        return lanes.stream().mapToInt(lane -> lane.transfers().size()).sum();
    }

    static List<String> transfers(List<Lane> lanes) {
        return lanes.stream()
                .map(
                        lane ->
                                lane.transfers().stream()
                                        .map(PlannerTest::describe)
                                        .collect(Collectors.joining(", ")))
                .toList();
    }

    private static String describe(Transfer t) {
        return t.source() + "." + t.chunk() + " " + t.from() + ">" + t.to();
    }

    static void assertPlan(
            RankPlan plan, List<String> lanes, List<String> arrivals, String consumption) {
        assertEquals(lanes, transfers(plan.lanes()));
        assertEquals(arrivals, transfers(plan.arrivals()));
        assertEquals(consumption, consumption(plan));
    }

    static String consumption(RankPlan plan) {
        return plan.consumption().stream()
                .map(block -> block.source() + "." + block.firstRow())
                .collect(Collectors.joining(", "));
    }
}
