package dev.weft.plan;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.RankPlan.Transfer.Initiator;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiPredicate;
import java.util.function.Function;

/** Describes plans as readable lines; consecutive chunks share a line. */
final class PlanText {

    private PlanText() {}

    /** First what all ranks have in common, then what each rank of the group does. */
    static List<String> of(List<RankPlan> plans) {
        List<String> lines = new ArrayList<>();
        lines.add(plans.getFirst().name() + ": " + plans.getFirst().chunks());
        lines.add(pacing(plans.getFirst()) + "; " + storage(plans.getFirst()));
        plans.forEach(plan -> lines.addAll(of(plan)));
        return lines;
    }

    /** What one rank does. */
    static List<String> of(RankPlan plan) {
        List<String> lines = new ArrayList<>();
        lines.add("rank " + plan.rank());
        for (Lane lane : plan.lanes()) {
            lines.add("  lane " + lane.index() + (lane.transfers().isEmpty() ? ": nothing" : ""));
            lines.addAll(runs(lane.transfers(), PlanText::follows, PlanText::transfers));
        }
        lines.add("  multiplies");
        boolean several = plan.programs() > 1;
        lines.addAll(runs(plan.consumption(), PlanText::follows, run -> rows(run, several)));
        if (!plan.releases().isEmpty()) {
            lines.add("  releases the shards of ranks " + plan.releases());
        }
        return lines;
    }

    private static String pacing(RankPlan plan) {
        Pacing pacing = plan.pacing();
        if (pacing.gatherFirst()) {
            return "products wait for the whole gather"
                    + (pacing.anyGather() ? ", which a transport may do in its own way" : "");
        }
        return pacing.stepRows() > 0
                ? "blocks are multiplied in steps of %d rows and more".formatted(pacing.stepRows())
                : "blocks are multiplied as they arrive";
    }

    private static String storage(RankPlan plan) {
        return switch (plan.storage()) {
            case GATHERED -> "rows are gathered";
            case PING_PONG -> "rows arrive in two buffers in turn";
            case IN_PLACE -> "rows are read in their owner's memory";
            case SUMS -> "sums of rows go from rank to rank";
        };
    }

    /** Describes consecutive items together. */
    private static <T> List<String> runs(
            List<T> all, BiPredicate<T, T> follows, Function<List<T>, String> text) {
        List<String> runs = new ArrayList<>();
        for (int first = 0, next; first < all.size(); first = next) {
            next = first + 1;
            while (next < all.size() && follows.test(all.get(next - 1), all.get(next))) {
                next++;
            }
            runs.add("    " + text.apply(all.subList(first, next)));
        }
        return runs;
    }

    private static boolean follows(Transfer before, Transfer after) {
        return before.from() == after.from()
                && before.to() == after.to()
                && before.source() == after.source()
                && before.chunk() + 1 == after.chunk()
                && before.initiator() == after.initiator()
                && before.slot() == after.slot()
                && before.credit() == after.credit();
    }

    private static String chunks(List<Transfer> run) {
        int first = run.getFirst().chunk();
        int last = run.getLast().chunk();
        return first == last ? "chunk " + first : "chunks %d to %d".formatted(first, last);
    }

    private static String transfers(List<Transfer> run) {
        Transfer first = run.getFirst();
        boolean put = first.initiator() == Initiator.SENDER;
        return "%s %s of rank %d %s%s%s"
                .formatted(
                        put ? "put" : "get",
                        chunks(run),
                        first.source(),
                        put ? "to rank " + first.to() : "from rank " + first.from(),
                        first.isForward() ? ", each after it has arrived" : "",
                        first.credit() == 0
                                ? ""
                                : ", once that rank has released " + first.credit());
    }

    private static String rows(List<RowBlock> run, boolean severalPrograms) {
        RowBlock last = run.getLast();
        return "rows %d to %d of rank %d%s%s"
                .formatted(
                        run.getFirst().firstRow(),
                        last.firstRow() + last.rows() - 1,
                        last.source(),
                        run.size() == 1 ? "" : ", in %d blocks".formatted(run.size()),
                        severalPrograms ? ", by program " + last.program() : "");
    }

    private static boolean follows(RowBlock before, RowBlock after) {
        return before.source() == after.source()
                && before.program() == after.program()
                && before.firstRow() + before.rows() == after.firstRow();
    }
}
