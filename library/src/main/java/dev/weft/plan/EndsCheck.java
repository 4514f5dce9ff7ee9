package dev.weft.plan;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Transfer;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Checks that both ends agree: a rank expects exactly what the initiators' lanes deliver to it. */
record EndsCheck(
        RankPlan plan, TransferIndex index, BitSet expected, Set<EndsCheck.LaneName> lanes) {

    /** One of the lanes of all ranks. */
    record LaneName(int initiator, int index) {}

    static void check(List<RankPlan> plans, TransferIndex index) {
        for (RankPlan plan : plans) {
            EndsCheck ends = new EndsCheck(plan, index, new BitSet(), new HashSet<>());
            plan.arrivals().forEach(ends::checkLane);
            ends.checkAllAreExpected();
        }
    }

    private void checkLane(Lane arrivals) {
        if (arrivals.transfers().isEmpty()) {
            throw new PlanException(plan.rank(), "has an empty lane among its arrivals");
        }
        LaneName name = null;
        int last = -1;
        for (Transfer transfer : arrivals.transfers()) {
            checkRecord(transfer);
            LaneName own =
                    new LaneName(
                            TransferIndex.initiator(transfer),
                            index.lane(plan.rank(), transfer.tag()));
            int position = index.position(plan.rank(), transfer.tag());
            if (name == null && !lanes.add(own)) {
                throw new PlanException(
                        plan.rank(), transfer, "one lane is split over two lanes of arrivals");
            }
            if (own.index() != arrivals.index() || (name != null && !own.equals(name))) {
                throw new PlanException(
                        plan.rank(),
                        transfer,
                        "is expected from another lane than lane %s of rank %s, which delivers it"
                                .formatted(own.index(), own.initiator()));
            }
            if (position <= last) {
                throw new PlanException(
                        plan.rank(), transfer, "is expected in another order than it is delivered");
            }
            name = own;
            last = position;
            expected.set(transfer.tag());
        }
    }

    private void checkRecord(Transfer transfer) {
        boolean isKnown = transfer.tag() >= 0 && transfer.tag() < plan.chunks().total();
        Transfer delivered = isKnown ? index.delivering(plan.rank(), transfer.tag()) : null;
        if (!transfer.equals(delivered)) {
            throw new PlanException(
                    plan.rank(),
                    transfer,
                    "the ends disagree: expects " + transfer + ", gets " + delivered);
        }
    }

    private void checkAllAreExpected() {
        for (int tag = 0; tag < plan.chunks().total(); tag++) {
            Transfer delivered = index.delivering(plan.rank(), tag);
            if (delivered != null && !expected.get(tag)) {
                throw new PlanException(
                        plan.rank(), delivered, "the ends disagree: gets it without expecting it");
            }
        }
    }
}
