package dev.weft.cli.simulate;

import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Transfer;
import java.util.List;
import java.util.Locale;

/** The plans of all ranks as the field {@code plan} of docs/sweep-record.md. */
record PlanJson(
        String name,
        String storage,
        boolean gatherFirst,
        boolean anyGather,
        long stepRows,
        List<Rank> ranks) {

    /**
     * @param consumption source, first row and rows of each block
     */
    record Rank(List<List<Move>> lanes, List<List<Long>> consumption, List<Integer> releases) {

        static Rank of(RankPlan plan) {
            return new Rank(
                    plan.lanes().stream()
                            .map(lane -> lane.transfers().stream().map(Move::of).toList())
                            .toList(),
                    plan.consumption().stream()
                            .map(it -> List.of((long) it.source(), it.firstRow(), it.rows()))
                            .toList(),
                    plan.releases());
        }
    }

    /** Plans that sum: the steps of all ranks, as lines to read. */
    record OfSums(String name, List<String> steps) {}

    /**
     * @param slot the receiver's buffer
     */
    record Move(int from, int to, int source, int chunk, String by, int credit, int slot) {

        static Move of(Transfer transfer) {
            return new Move(
                    transfer.from(),
                    transfer.to(),
                    transfer.source(),
                    transfer.chunk(),
                    transfer.initiator().name().toLowerCase(Locale.ROOT),
                    transfer.credit(),
                    transfer.slot());
        }
    }

    static PlanJson of(List<RankPlan> plans) {
        RankPlan first = plans.getFirst();
        return new PlanJson(
                first.name(),
                first.storage().name().toLowerCase(Locale.ROOT),
                first.pacing().gatherFirst(),
                first.pacing().anyGather(),
                first.pacing().stepRows(),
                plans.stream().map(Rank::of).toList());
    }
}
