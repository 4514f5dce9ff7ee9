package dev.weft.plan;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.RankPlan.Transfer;
import java.util.Collections;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;

/** Two buffers and their credits: what can go wrong, and that the checker finds it. */
class PingPongCheckTest {

    private static final Chunks CHUNKS = Chunks.byRows(Shards.of(2, 2, 2, 2, 2), 3, 1, 1);
    private static final List<RankPlan> PLANS = PlanCases.pingPongPlans(CHUNKS);

    @Test
    void findsAnIgnoredCredit() {
        refuses(
                "rank 0, source 2, chunk 0: may overwrite buffer 1 while it is in use: credit is 0,"
                        + " expected at least 1",
                onEveryTransfer(t -> PlanEdits.withCredit(t, 0)));
        refuses(
                "rank 0, source 1, chunk 0: may overwrite buffer 0 while it is in use: credit is 1,"
                        + " expected at least 2",
                onEveryTransfer(t -> PlanEdits.withCredit(t, Math.min(1, t.credit()))));
    }

    @Test
    void findsABufferThatIsTakenTwiceInARow() {
        refuses(
                "rank 0, source 3, chunk 0: may overwrite buffer 1",
                onEveryTransfer(t -> PlanEdits.withSlot(t, 1)));
    }

    @Test
    void findsAShardInBothBuffers() {
        refuses(
                "source 4, chunk 1: its shard lands in both buffers",
                onEveryTransfer(t -> PlanEdits.withSlot(t, t.chunk() % 2)));
    }

    @Test
    void findsABufferThatDoesNotExist() {
        refuses("slot is 2, expected 0 or 1", onEveryTransfer(t -> PlanEdits.withSlot(t, 2)));
        refuses("credit is 5, expected 0 to 4", onEveryTransfer(t -> PlanEdits.withCredit(t, 5)));
    }

    @Test
    void findsACyclicWaitForCredit() {
        refuses(
                "rank 0, source 4, chunk 0: waits forever: transfer from rank 0 to rank 1 needs 1"
                        + " released shards, rank 1 releases 0",
                onEveryTransfer(t -> t.isForward() ? PlanEdits.withCredit(t, t.credit() + 1) : t));
    }

    @Test
    void aBufferThatIsConsumedButNotForwardedStaysInUse() {
        // Rank 2 forwards the shard of rank 1 last: its buffer never becomes free for step 3.
        List<RankPlan> late =
                PlanEdits.editLane(
                        PLANS,
                        2,
                        0,
                        transfers -> {
                            Collections.rotate(transfers.subList(2, transfers.size()), -2);
                            return transfers;
                        });
        waitsForever(late);
    }

    @Test
    void aBufferThatIsForwardedButNotConsumedStaysInUse() {
        // Rank 2 consumes the shard of step 3 before that of step 1, which holds its buffer.
        List<RankPlan> late = PlanEdits.editConsumption(PLANS, 2, PlanEdits.swap(2, 6));
        waitsForever(late);
    }

    @Test
    void aBlockWithoutItsChunkWaitsForever() {
        List<RankPlan> dropped =
                PlanEdits.editLane(
                        PlanCases.plans(Algorithm.MESH_PULL, CHUNKS, 1),
                        1,
                        0,
                        transfers -> transfers.subList(1, transfers.size()));
        PlanEdits.assertFault(
                "rank 1, source 2, chunk 0: waits forever: block", () -> DryRun.run(dropped));
    }

    @Test
    void emptyShardsGiveCreditWithTheShardBeforeThem() {
        PlanChecker.check(
                PlanCases.pingPongPlans(Chunks.byRows(Shards.of(3, 0, 0, 0, 2, 0, 1), 2, 1, 2)));
    }

    private static List<RankPlan> onEveryTransfer(UnaryOperator<Transfer> edit) {
        return PlanEdits.editEveryLane(PLANS, transfers -> transfers.stream().map(edit).toList());
    }

    private static void waitsForever(List<RankPlan> plans) {
        DryRun.run(PLANS);
        PlanException fault = assertThrows(PlanException.class, () -> DryRun.run(plans));
        assertTrue(fault.getMessage().contains("waits forever: transfer"), fault.getMessage());
        assertTrue(fault.getMessage().contains("released shards"), fault.getMessage());
    }

    private static void refuses(String message, List<RankPlan> plans) {
        PlanEdits.assertFault(message, () -> PlanChecker.check(plans));
    }
}
