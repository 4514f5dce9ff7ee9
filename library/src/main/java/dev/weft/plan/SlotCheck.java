package dev.weft.plan;

import dev.weft.plan.RankPlan.Transfer;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/**
 * Checks ping-pong buffers: all chunks of a shard go to one buffer, and each waits for the credit
 * that releases the buffer's previous shard. As shards are released in the plan's order, that one
 * shard stands for all earlier ones. This holds in whatever order the lanes run.
 *
 * @param slots per number of a release: the buffer of the shard
 */
record SlotCheck(RankPlan plan, int[] numbers, int[] slots) {

    private static final int NONE = -1;

    static void check(List<RankPlan> plans) {
        for (RankPlan plan : plans) {
            int[] slots = new int[plan.ranks()];
            Arrays.fill(slots, NONE);
            SlotCheck check = new SlotCheck(plan, plan.releaseNumbers(), slots);
            check.forEachArrival(check::checkOneBuffer);
            int[] previous = check.previousNumbers();
            check.forEachArrival(transfer -> check.checkCredit(transfer, previous));
        }
    }

    private void forEachArrival(Consumer<Transfer> action) {
        plan.arrivals().forEach(lane -> lane.transfers().forEach(action));
    }

    private void checkOneBuffer(Transfer transfer) {
        int number = numbers[transfer.source()];
        if (slots[number] != NONE && slots[number] != transfer.slot()) {
            throw new PlanException(plan.rank(), transfer, "its shard lands in both buffers");
        }
        slots[number] = transfer.slot();
    }

    /** Per number: the last one before it that used the same buffer; 0 if there is none. */
    private int[] previousNumbers() {
        int[] previous = new int[slots.length];
        int[] lastOfSlot = new int[2];
        for (int number = 1; number < slots.length; number++) {
            if (slots[number] != NONE) {
                previous[number] = lastOfSlot[slots[number]];
                lastOfSlot[slots[number]] = number;
            }
        }
        return previous;
    }

    private void checkCredit(Transfer transfer, int[] previous) {
        int needed = previous[numbers[transfer.source()]];
        if (transfer.credit() < needed) {
            throw new PlanException(
                    plan.rank(),
                    transfer,
                    "may overwrite buffer %s while it is in use: credit is %s, expected at least %s"
                            .formatted(transfer.slot(), transfer.credit(), needed));
        }
    }
}
