package dev.weft.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.GatherView.Lane;
import dev.weft.plan.GatherView.Move;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** Plans small enough to read. A transfer reads "source.chunk from&gt;to", a block "source.row". */
class PlannerTest {

    @Test
    void ringSendsItsOwnShardAndThenForwards() {
        GatherView plan = PlanCases.plan(Algorithm.RING, chunks(3, 2), 1, 0);
        assertPlan(
                plan,
                List.of("0.0 0>1, 0.1 0>1, 2.0 0>1, 2.1 0>1"),
                "0.0, 0.1, 2.0, 2.1, 1.0, 1.1");
        assertEquals(new Move(0, 1, 2, 1, false, 0, 1), plan.lanes().getFirst().moves().getLast());
    }

    @Test
    void ringLanesCarrySegmentsInTurn() {
        Chunks chunks = Chunks.byRows(Shards.of(5, 5), 4, 1, 2);
        GatherView plan = PlanCases.plan(Algorithm.RING, chunks, 2, 0);
        assertEquals(
                List.of("0.0 0>1, 0.1 0>1, 0.4 0>1", "0.2 0>1, 0.3 0>1"), transfers(plan.lanes()));
        assertEquals("0.0, 0.2, 0.4, 1.0, 1.2, 1.4", consumption(plan));
    }

    @Test
    void bidirectionalRingTakesTheShorterWay() {
        GatherView plan = PlanCases.plan(Algorithm.BIDIRECTIONAL_RING, chunks(5, 1), 1, 0);
        assertPlan(
                plan, List.of("0.0 0>1, 4.0 0>1", "0.0 0>4, 1.0 0>4"), "0.0, 4.0, 1.0, 3.0, 2.0");
    }

    @Test
    void bidirectionalRingHalvesTheFarthestShard() {
        GatherView plan = PlanCases.plan(Algorithm.BIDIRECTIONAL_RING, chunks(4, 3), 2, 0);
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
        GatherView plan = PlanCases.plan(Algorithm.BIDIRECTIONAL_RING, chunks(2, 5), 3, 1);
        assertEquals(
                List.of("1.0 1>0, 1.2 1>0", "1.1 1>0", "1.3 1>0, 1.4 1>0"),
                transfers(plan.lanes()));
    }

    @Test
    void meshPushServesPeersFromItsSuccessorOn() {
        GatherView plan = PlanCases.plan(Algorithm.MESH_PUSH, chunks(4, 1), 1, 1);
        assertPlan(plan, List.of("1.0 1>2, 1.0 1>3, 1.0 1>0"), "1.0, 0.0, 3.0, 2.0");
    }

    @Test
    void meshPushIsConsumedInTheOrderInWhichPeersGetRoundToIt() {
        GatherView shared = PlanCases.plan(Algorithm.MESH_PUSH, chunks(4, 2), 1, 0);
        assertEquals("0.0, 0.1, 3.0, 3.1, 2.0, 2.1, 1.0, 1.1", consumption(shared));
        GatherView twoLanes = PlanCases.plan(Algorithm.MESH_PUSH, chunks(4, 2), 2, 0);
        assertEquals("0.0, 0.1, 3.0, 3.1, 2.0, 2.1, 1.0, 1.1", consumption(twoLanes));
        GatherView ample = PlanCases.plan(Algorithm.MESH_PUSH, chunks(4, 2), 3, 0);
        assertEquals("0.0, 0.1, 3.0, 2.0, 1.0, 3.1, 2.1, 1.1", consumption(ample));
    }

    /** One chunk after the other, whatever peer it is for. */
    @Test
    void meshPushDealsChunksToFewerLanesThanPeersInTurn() {
        GatherView plan = PlanCases.plan(Algorithm.MESH_PUSH, chunks(4, 3), 2, 0);
        assertEquals(
                List.of(
                        "0.0 0>1, 0.2 0>1, 0.1 0>2, 0.0 0>3, 0.2 0>3",
                        "0.1 0>1, 0.0 0>2, 0.2 0>2, 0.1 0>3"),
                transfers(plan.lanes()));
    }

    @Test
    void meshLanesOfOnePeerTakeContiguousRanges() {
        GatherView plan = PlanCases.plan(Algorithm.MESH_PUSH, chunks(3, 3), 5, 0);
        assertEquals(
                List.of("0.0 0>1", "0.1 0>1, 0.2 0>1", "0.0 0>2", "0.1 0>2, 0.2 0>2"),
                transfers(plan.lanes()));
    }

    @Test
    void meshPullReadsFromItsSuccessorOn() {
        GatherView plan = PlanCases.plan(Algorithm.MESH_PULL, chunks(4, 1), 2, 1);
        assertEquals(List.of("2.0 2>1, 0.0 0>1", "3.0 3>1"), transfers(plan.lanes()));
        assertEquals("1.0, 2.0, 3.0, 0.0", consumption(plan));
        assertEquals(new Move(2, 1, 2, 0, true, 0, 0), plan.lanes().getFirst().moves().getFirst());
    }

    @Test
    void sequentialPullsAndConsumesInNaturalOrder() {
        GatherView plan = PlanCases.plan(Algorithm.SEQUENTIAL, chunks(3, 2), 1, 1);
        assertEquals(PlanCases.plan(Algorithm.MESH_PULL, chunks(3, 2), 1, 1).lanes(), plan.lanes());
        assertEquals("0.0, 0.1, 1.0, 1.1, 2.0, 2.1", consumption(plan));
    }

    @Test
    void directMovesNothing() {
        GatherView plan = PlanCases.plan(Algorithm.DIRECT, chunks(3, 2), 4, 1);
        assertTrue(plan.plan().readsPeersRows());
        assertEquals(List.of(), plan.lanes());
        assertEquals("1.0, 1.1, 2.0, 2.1, 0.0, 0.1", consumption(plan));
    }

    /** A forward waits for its chunk, and from the third shard on also for a free buffer. */
    @Test
    void pingPongRingAlternatesBuffersAndWaitsForTheirRelease() {
        GatherView plan = PlanCases.plan(Algorithm.pingPongRing(), chunks(5, 1), 1, 2);
        assertTrue(plan.plan().reusesBuffers());
        List<Move> sent = plan.lanes().getFirst().moves();
        assertEquals(List.of(2, 1, 0, 4), sent.stream().map(Move::source).toList());
        assertEquals(List.of(1, 0, 1, 0), sent.stream().map(Move::buffer).toList());
        assertEquals(List.of(0, 1, 2, 2), sent.stream().map(Move::waits).toList());
        assertEquals("2.0, 1.0, 0.0, 4.0, 3.0", consumption(plan));
    }

    @Test
    void lanesOfAPingPongRingCarryTheirSegmentsOfEveryShard() {
        GatherView plan = PlanCases.plan(Algorithm.pingPongRing(), chunks(4, 3), 2, 1);
        assertEquals(
                List.of(
                        "1.0 1>2, 1.2 1>2, 0.0 1>2, 0.2 1>2, 3.0 1>2, 3.2 1>2",
                        "1.1 1>2, 0.1 1>2, 3.1 1>2"),
                transfers(plan.lanes()));
        // Lane 1 is ahead of lane 0, but no step is consumed before the one whose buffer it takes.
        assertEquals(
                List.of(1, 1, 1, 0, 0, 0, 3, 3, 3, 2, 2, 2),
                plan.consumption().stream().map(GatherView.Block::source).toList());
    }

    @Test
    void anEmptyShardKeepsItsStepInThePingPongRing() {
        Chunks chunks = Chunks.byRows(Shards.of(1, 0, 1, 1), 1, 1, 1);
        GatherView plan = PlanCases.plan(Algorithm.pingPongRing(), chunks, 1, 2);
        List<Move> sent = plan.lanes().getFirst().moves();
        assertEquals(List.of(2, 0), sent.stream().map(Move::source).toList());
        assertEquals(List.of(1, 1), sent.stream().map(Move::buffer).toList());
        assertEquals(List.of(0, 2), sent.stream().map(Move::waits).toList());
    }

    @Test
    void oneRankNeedsNoLanes() {
        for (Algorithm algorithm : PlanCases.algorithms()) {
            GatherView plan = PlanCases.plan(algorithm, chunks(1, 3), 4, 0);
            assertEquals(List.of(), plan.lanes());
            assertEquals("0.0, 0.1, 0.2", consumption(plan));
        }
        assertEquals(
                List.of(), PlanCases.plan(Algorithm.pingPongRing(), chunks(1, 3), 1, 0).lanes());
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
            GatherView plan = PlanCases.plan(algorithm, chunks, 3, 77);
            boolean moves = algorithm != Algorithm.DIRECT;
            assertEquals(moves ? 16 * (ranks - 1) : 0, count(plan.lanes()), algorithm.label());
            assertEquals(4 * ranks, plan.consumption().size(), algorithm.label());
        }
    }

    @Test
    void refusesWhatHasNoPlan() {
        refuses("algorithm auto", () -> PlanCases.plan(Algorithm.AUTO, chunks(2, 1), 1, 0));
        refuses("algorithm auto", () -> Planner.lanes(Algorithm.AUTO, Hosts.one(2), 1));
        refuses("0 lanes", () -> PlanCases.plan(Algorithm.RING, chunks(2, 1), 0, 0));
        refuses("0 lanes", () -> PlanCases.plan(Algorithm.pingPongRing(), chunks(2, 1), 0, 0));
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
        return lanes.stream().mapToInt(lane -> lane.moves().size()).sum();
    }

    static List<String> transfers(List<Lane> lanes) {
        return lanes.stream()
                .map(
                        lane ->
                                lane.moves().stream()
                                        .map(PlannerTest::describe)
                                        .collect(Collectors.joining(", ")))
                .toList();
    }

    private static String describe(Move t) {
        return t.source() + "." + t.chunk() + " " + t.from() + ">" + t.to();
    }

    static void assertPlan(GatherView plan, List<String> lanes, String consumption) {
        assertEquals(lanes, transfers(plan.lanes()));
        assertEquals(consumption, consumption(plan));
    }

    static String consumption(GatherView plan) {
        return plan.consumption().stream()
                .map(block -> block.source() + "." + block.firstRow())
                .collect(Collectors.joining(", "));
    }
}
