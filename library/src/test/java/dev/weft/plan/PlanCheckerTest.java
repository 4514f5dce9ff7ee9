package dev.weft.plan;

import static dev.weft.plan.PlanEdits.edit;
import static dev.weft.plan.PlanEdits.first;
import static dev.weft.plan.PlanEdits.set;
import static dev.weft.plan.PlanEdits.twice;
import static dev.weft.plan.PlanEdits.without;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Storage;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.RankPlan.Transfer.Initiator;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;

/** The checker finds what is wrong with a plan of which only one thing is wrong. */
class PlanCheckerTest {

    private static final Chunks CHUNKS = Chunks.byRows(Shards.of(4, 4, 4, 4), 6, 1, 2);

    @Test
    void findsADroppedTransfer() {
        refuses(
                "rank 3, source 2, chunk 0: never delivered",
                withLaneOfRank2(Algorithm.MESH_PUSH, without(0)));
    }

    @Test
    void findsADuplicatedTransfer() {
        refuses(
                "rank 3, source 2, chunk 1: delivered more than once",
                withLaneOfRank2(Algorithm.RING, twice(1)));
    }

    private static List<RankPlan> withLaneOfRank2(
            Algorithm algorithm, UnaryOperator<List<Transfer>> edit) {
        List<RankPlan> plans = PlanCases.plans(algorithm, CHUNKS, 1);
        return PlanEdits.matchArrivals(PlanEdits.editLane(plans, 2, 0, edit));
    }

    @Test
    void findsAForwardBeforeItsArrivalInOneLane() {
        List<RankPlan> plans = withPulledChunk();
        PlanChecker.check(plans);
        refuses(
                "rank 1, source 0, chunk 0: is forwarded before it arrives in the same lane",
                PlanEdits.matchArrivals(PlanEdits.editLane(plans, 1, 0, PlanCheckerTest::rotate)));
    }

    /** A ring in which rank 1 itself fetches the first chunk that it forwards, in the same lane. */
    private static List<RankPlan> withPulledChunk() {
        List<RankPlan> plans = PlanCases.plans(Algorithm.RING, CHUNKS, 1);
        Transfer put = plans.get(0).lanes().getFirst().transfers().getFirst();
        Transfer get = PlanEdits.withInitiator(put, Initiator.RECEIVER);
        List<RankPlan> pulled =
                PlanEdits.editLane(PlanEdits.editLane(plans, 0, 0, without(0)), 1, 0, first(get));
        return withoutConsumptionOrder(PlanEdits.matchArrivals(pulled));
    }

    /** Two lanes now share a block of rank 0: let single rows be blocks. */
    private static List<RankPlan> withoutConsumptionOrder(List<RankPlan> plans) {
        return PlanEdits.editConsumption(
                plans,
                1,
                blocks -> {
                    List<RowBlock> rows = new ArrayList<>();
                    for (RowBlock block : blocks) {
                        rows.add(row(block, 0));
                        rows.add(row(block, 1));
                    }
                    return rows;
                });
    }

    private static RowBlock row(RowBlock block, int row) {
        return new RowBlock(block.source(), block.firstRow() + row, 1, block.firstChunk() + row, 1);
    }

    @Test
    void findsAChunkThatIsForwardedInACircle() {
        List<RankPlan> plans = PlanCases.plans(Algorithm.MESH_PUSH, CHUNKS, 1);
        // Rank 1 gets the first chunk of rank 0 from rank 2, and rank 2 gets it from rank 1.
        Transfer toOne = plans.get(0).lanes().getFirst().transfers().get(0);
        Transfer toTwo = plans.get(0).lanes().getFirst().transfers().get(4);
        List<RankPlan> circle = PlanEdits.editLane(plans, 0, 0, without(4));
        circle = PlanEdits.editLane(circle, 0, 0, without(0));
        circle = PlanEdits.editLane(circle, 1, 0, first(PlanEdits.withEnds(toTwo, 1, 2)));
        circle = PlanEdits.editLane(circle, 2, 0, first(PlanEdits.withEnds(toOne, 2, 1)));
        refuses(
                "rank 1, source 0, chunk 0: is forwarded in a circle",
                PlanEdits.matchArrivals(circle));
    }

    @Test
    void findsACyclicWaitForArrivals() {
        List<RankPlan> plans = PlanCases.plans(Algorithm.RING, CHUNKS, 1);
        List<RankPlan> forwardsFirst = PlanEdits.editEveryLane(plans, PlanEdits.swap(0, 4));
        refuses(
                "rank 0, source 3, chunk 0: waits forever: transfer from rank 0 to rank 1 needs the"
                        + " chunk to arrive at rank 0",
                inDeliveryOrder(forwardsFirst));
    }

    /** Remote blocks in the order in which the one lane of arrivals completes them. */
    private static List<RankPlan> inDeliveryOrder(List<RankPlan> plans) {
        List<RankPlan> result = plans;
        for (RankPlan plan : plans) {
            List<Integer> order =
                    plan.arrivals().getFirst().transfers().stream().map(Transfer::tag).toList();
            result =
                    PlanEdits.editConsumption(
                            result,
                            plan.rank(),
                            blocks -> {
                                blocks.sort((a, b) -> complete(order, a) - complete(order, b));
                                return blocks;
                            });
        }
        return result;
    }

    private static int complete(List<Integer> order, RowBlock block) {
        int first = CHUNKS.tag(block.source(), block.firstChunk());
        return Math.max(order.indexOf(first), order.indexOf(first + 1));
    }

    @Test
    void findsARowThatIsConsumedTwice() {
        List<RankPlan> plans = PlanCases.plans(Algorithm.MESH_PULL, CHUNKS, 2);
        refuses(
                "rank 2, source 3, chunk 0: block of 2 rows from row 0 on is consumed more"
                        + " than once",
                PlanEdits.editConsumption(plans, 2, twice(2)));
    }

    @Test
    void findsARowThatIsNeverConsumed() {
        for (Algorithm algorithm : PlanCases.algorithms()) {
            List<RankPlan> plans = PlanCases.plans(algorithm, CHUNKS, 2);
            RowBlock dropped = plans.get(2).consumption().get(5);
            refuses(
                    "rank 2, source "
                            + dropped.source()
                            + ", chunk "
                            + dropped.firstChunk()
                            + ": row "
                            + dropped.firstRow()
                            + " of the shard is never consumed",
                    PlanEdits.editConsumption(plans, 2, without(5)));
        }
    }

    @Test
    void findsConsumptionThatIgnoresDelivery() {
        List<RankPlan> plans = PlanCases.plans(Algorithm.RING, CHUNKS, 1);
        refuses(
                "rank 1, source 0, chunk 0: block of 2 rows from row 0 on is consumed after rows"
                        + " that its lane delivers later",
                PlanEdits.editConsumption(plans, 1, PlanEdits.swap(2, 3)));
    }

    @Test
    void findsOwnRowsThatAreNotFirst() {
        List<RankPlan> plans = PlanCases.plans(Algorithm.DIRECT, CHUNKS, 1);
        refuses(
                "rank 1, source 1, chunk 2: block of 2 rows from row 2 on is the rank's own",
                PlanEdits.editConsumption(plans, 1, PlanEdits.swap(1, 2)));
    }

    @Test
    void anyOrderWillDoOnceAllIsGathered() {
        List<RankPlan> plans = PlanCases.plans(Algorithm.SEQUENTIAL, CHUNKS, 1);
        PlanChecker.check(PlanEdits.editConsumption(plans, 1, PlanEdits.swap(1, 2)));
    }

    @Test
    void findsABlockThatNamesTheWrongChunks() {
        List<RankPlan> plans = PlanCases.plans(Algorithm.MESH_PULL, CHUNKS, 1);
        refuses("rank 0, source 1, chunk 0", withRemoteBlock(plans, new RowBlock(1, 0, 2, 0, 1)));
        refuses("covered by 2 chunks", withRemoteBlock(plans, new RowBlock(1, 0, 2, 1, 2)));
        refuses("not within the shard", withRemoteBlock(plans, new RowBlock(1, 3, 2, 3, 2)));
        refuses("not within the shard", withRemoteBlock(plans, new RowBlock(1, 0, 0, 0, 0)));
        refuses("of no rank", withRemoteBlock(plans, new RowBlock(4, 0, 2, 0, 2)));
    }

    private static List<RankPlan> withRemoteBlock(List<RankPlan> plans, RowBlock block) {
        return PlanEdits.editConsumption(plans, 0, set(2, block));
    }

    @Test
    void aBlockMayComeByTwoLanes() {
        List<RankPlan> plans = PlanCases.plans(Algorithm.MESH_PULL, CHUNKS, 2);
        Transfer moved = plans.get(0).lanes().get(0).transfers().getFirst();
        List<RankPlan> split = PlanEdits.editLane(plans, 0, 0, without(0));
        split = PlanEdits.editLane(split, 0, 1, first(moved));
        PlanChecker.check(PlanEdits.matchArrivals(split));
    }

    @Test
    void findsEndsThatDisagree() {
        List<RankPlan> plans = PlanCases.plans(Algorithm.MESH_PUSH, CHUNKS, 3);
        refuses(
                "rank 1, source 0, chunk 3: the ends disagree: gets it without expecting it",
                PlanEdits.editArrivals(plans, 1, 0, without(3)));
        refuses(
                "rank 1, source 0, chunk 0: the ends disagree: expects Transfer[from=2,",
                PlanEdits.editArrivals(plans, 1, 0, edit(0, t -> PlanEdits.withEnds(t, 2, 1))));
        refuses(
                "rank 1, source 0, chunk 0: the ends disagree",
                PlanEdits.editArrivals(plans, 1, 0, edit(0, t -> PlanEdits.withTag(t, 99))));
        refuses(
                "rank 1, source 0, chunk 0: is expected in another order",
                PlanEdits.editArrivals(plans, 1, 0, PlanEdits.swap(0, 1)));
        refuses(
                "rank 1, source 0, chunk 2: is expected in another order",
                PlanEdits.editArrivals(plans, 1, 0, twice(2)));
    }

    @Test
    void findsArrivalsInTheWrongLanes() {
        List<RankPlan> plans = PlanCases.plans(Algorithm.MESH_PUSH, CHUNKS, 3);
        List<Lane> arrivals = plans.get(1).arrivals();
        List<Lane> renamed = new ArrayList<>(arrivals);
        renamed.set(0, new Lane(2, arrivals.get(0).transfers()));
        refuses("from another lane than lane 0 of rank 0", withArrivals(plans, renamed));
        List<Lane> merged = new ArrayList<>(arrivals.subList(1, 3));
        List<Transfer> both = new ArrayList<>(arrivals.get(1).transfers());
        both.addAll(arrivals.get(0).transfers());
        merged.set(0, new Lane(1, both));
        refuses("from another lane than lane 0 of rank 0", withArrivals(plans, merged));
        List<Lane> split = new ArrayList<>(arrivals);
        split.set(0, new Lane(0, arrivals.get(0).transfers().subList(0, 2)));
        split.add(new Lane(0, arrivals.get(0).transfers().subList(2, 4)));
        refuses("one lane is split over two lanes of arrivals", withArrivals(plans, split));
        List<Lane> padded = new ArrayList<>(arrivals);
        padded.add(new Lane(3, List.of()));
        refuses("rank 1: has an empty lane among its arrivals", withArrivals(plans, padded));
    }

    private static List<RankPlan> withArrivals(List<RankPlan> plans, List<Lane> arrivals) {
        return PlanEdits.editPlan(plans, 1, plan -> PlanEdits.copy(plan, plan.lanes(), arrivals));
    }

    @Test
    void findsTransfersThatAreNotWellFormed() {
        refusesTransfer("leaves the group of 4 ranks", t -> PlanEdits.withEnds(t, 0, 4));
        refusesTransfer("leaves the group of 4 ranks", t -> PlanEdits.withEnds(t, -1, 1));
        refusesTransfer("goes from a rank to itself", t -> PlanEdits.withEnds(t, 1, 1));
        refusesTransfer("delivers a rank its own chunk", t -> PlanEdits.withEnds(t, 1, 0));
        refusesTransfer("the shard has 4 chunks", t -> PlanEdits.withChunk(t, 4));
        refusesTransfer("tag is 1, expected 0", t -> PlanEdits.withTag(t, 1));
        refusesTransfer("slot is 1, expected the place of source 0", t -> PlanEdits.withSlot(t, 1));
        refusesTransfer("credit is 1, expected 0 to 0", t -> PlanEdits.withCredit(t, 1));
        refusesTransfer(
                "stands in a lane of another rank",
                t -> PlanEdits.withInitiator(t, Initiator.RECEIVER));
    }

    private static void refusesTransfer(String message, UnaryOperator<Transfer> edit) {
        List<RankPlan> plans = PlanCases.plans(Algorithm.MESH_PUSH, CHUNKS, 1);
        refuses(message, PlanEdits.editLane(plans, 0, 0, edit(0, edit)));
    }

    @Test
    void findsPlansThatDoNotBelongTogether() {
        List<RankPlan> ring = PlanCases.plans(Algorithm.RING, CHUNKS, 1);
        refuses("rank 0: plan for 4 ranks among 3 plans", ring.subList(0, 3));
        refuses("rank 2: rank is 1, expected 2", PlanEdits.editPlan(ring, 2, p -> ring.get(1)));
        refuses("rank 2: name is mesh-push", replaced(ring, Algorithm.MESH_PUSH, CHUNKS, 1));
        refuses("rank 2: number of lanes is 2", replaced(ring, Algorithm.RING, CHUNKS, 2));
        Chunks other = CHUNKS.withChunkCols(2);
        refuses("rank 2: chunks is shards", replaced(ring, Algorithm.RING, other, 1));
        refuses(
                "rank 2: storage is PING_PONG",
                PlanEdits.editPlan(ring, 2, p -> PlanCases.pingPongRing(CHUNKS, 2)));
        refuses(
                "rank 2: gathering first is true",
                PlanEdits.editPlan(ring, 2, p -> p.with(p.name(), Pacing.GATHER_FIRST)));
        refuses(
                "rank 2: rows of a step is 8",
                PlanEdits.editPlan(ring, 2, p -> p.with(p.name(), Pacing.inSteps(8))));
        assertThrows(IllegalArgumentException.class, () -> PlanChecker.check(List.of()));
    }

    @Test
    void findsAPaceThatTheStorageCannotKeep() {
        refuses(
                "rank 0: storage PING_PONG with Pacing[gatherFirst=true",
                paced(PlanCases.pingPongPlans(CHUNKS), Pacing.GATHER_FIRST));
        List<RankPlan> inPlace = PlanCases.plans(Algorithm.DIRECT, CHUNKS, 1);
        refuses("rank 0: storage IN_PLACE with", paced(inPlace, Pacing.GATHER_FIRST));
        refuses("rank 0: storage IN_PLACE with", paced(inPlace, Pacing.inSteps(2)));
    }

    private static List<RankPlan> paced(List<RankPlan> plans, Pacing pacing) {
        return plans.stream().map(p -> p.with(p.name(), pacing)).toList();
    }

    private static List<RankPlan> replaced(
            List<RankPlan> plans, Algorithm algorithm, Chunks chunks, int lanes) {
        return PlanEdits.editPlan(plans, 2, p -> PlanCases.plan(algorithm, chunks, lanes, 2));
    }

    @Test
    void findsTransfersOfWhatStaysInPlace() {
        List<RankPlan> mesh = PlanCases.plans(Algorithm.MESH_PULL, CHUNKS, 1);
        List<RankPlan> inPlace =
                mesh.stream()
                        .map(
                                p ->
                                        new RankPlan(
                                                p.name(),
                                                Storage.IN_PLACE,
                                                p.rank(),
                                                p.chunks(),
                                                p.lanes(),
                                                p.arrivals(),
                                                p.consumption(),
                                                p.releases(),
                                                p.pacing()))
                        .toList();
        refuses("moves a chunk that stays in place", inPlace);
    }

    private static void refuses(String message, List<RankPlan> plans) {
        PlanEdits.assertFault(message, () -> PlanChecker.check(plans));
    }

    private static List<Transfer> rotate(List<Transfer> transfers) {
        Collections.rotate(transfers, -1);
        return transfers;
    }
}
