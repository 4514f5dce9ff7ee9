package dev.weft.plan;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Transfer;
import java.util.List;

/** A number by which ranks on any machines compare plans that they obtained in the same way. */
final class PlanDigest {

    private static final long PRIME = 0x100000001b3L;

    private long digest = 0xcbf29ce484222325L;

    private PlanDigest() {}

    /** The digest of the plans of all ranks, without their names. */
    static long of(List<RankPlan> plans) {
        if (plans instanceof WrittenPlans written) {
            return written.digest();
        }
        PlanDigest result = new PlanDigest();
        result.add(plans.isEmpty() ? 0 : plans.getFirst().chunks().hashCode());
        plans.forEach(result::add);
        return result.digest;
    }

    private void add(RankPlan plan) {
        add(plan.storage().ordinal());
        add(plan.pacing().gatherFirst() ? 1 : 0);
        add(plan.pacing().anyGather() ? 1 : 0);
        add(plan.pacing().stepRows());
        plan.lanes().forEach(this::add);
        plan.arrivals().forEach(this::add);
        for (RowBlock block : plan.consumption()) {
            add(block.source());
            add(block.firstRow());
            add(block.rows());
            add(block.program());
        }
        plan.releases().forEach(this::add);
    }

    private void add(Lane lane) {
        add(lane.index());
        for (Transfer transfer : lane.transfers()) {
            add(transfer.from());
            add(transfer.to());
            add(transfer.tag());
            add(transfer.initiator().ordinal());
            add(transfer.slot());
            add(transfer.credit());
        }
    }

    private void add(long value) {
        digest = (digest ^ value) * PRIME;
    }
}
