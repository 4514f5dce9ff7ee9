package dev.weft.plan;

import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/**
 * Ping-pong buffers: all chunks of a shard land in one buffer, and each of them waits for the
 * credit that releases the shard which held the buffer before. As shards are released in the order
 * of their steps, that one shard stands for all earlier ones. It holds in whatever order the lanes
 * run.
 */
final class SlotCheck {

    private static final int NONE = -1;

    private final RankPlan plan;
    private final int ranks;

    /** Per step: the buffer that the shard lands in. */
    private final int[] slots;

    private SlotCheck(RankPlan plan) {
        this.plan = plan;
        this.ranks = plan.ranks();
        this.slots = new int[ranks];
        Arrays.fill(slots, NONE);
    }

    static void check(List<RankPlan> plans) {
        for (RankPlan plan : plans) {
            SlotCheck check = new SlotCheck(plan);
            check.forEachArrival(check::checkOneBuffer);
            int[] previous = check.previousSteps();
            check.forEachArrival(transfer -> check.checkCredit(transfer, previous));
        }
    }

    /** In which step of a ring a shard comes to a rank: the first neighbour's in step 1. */
    static int step(int rank, int source, int ranks) {
        return Math.floorMod(rank - source, ranks);
    }

    private void forEachArrival(Consumer<Transfer> action) {
        plan.arrivals().forEach(lane -> lane.transfers().forEach(action));
    }

    private int step(Transfer transfer) {
        return step(plan.rank(), transfer.source(), ranks);
    }

    private void checkOneBuffer(Transfer transfer) {
        int step = step(transfer);
        if (slots[step] != NONE && slots[step] != transfer.slot()) {
            throw new PlanException(plan.rank(), transfer, "its shard lands in both buffers");
        }
        slots[step] = transfer.slot();
    }

    /** Per step: the last step before it that used the same buffer; 0 where the buffer is free. */
    private int[] previousSteps() {
        int[] previous = new int[ranks];
        int[] lastOfSlot = new int[2];
        for (int step = 1; step < ranks; step++) {
            if (slots[step] != NONE) {
                previous[step] = lastOfSlot[slots[step]];
                lastOfSlot[slots[step]] = step;
            }
        }
        return previous;
    }

    private void checkCredit(Transfer transfer, int[] previous) {
        int needed = previous[step(transfer)];
        if (transfer.credit() < needed) {
            throw new PlanException(
                    plan.rank(),
                    transfer,
                    "may overwrite buffer "
                            + transfer.slot()
                            + " while it is in use: credit is "
                            + transfer.credit()
                            + ", expected at least "
                            + needed);
        }
    }
}
