package dev.weft.plan;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Transfer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.function.Executable;

/** Takes plans apart and puts them together again, to break them. */
final class PlanEdits {

    private PlanEdits() {}

    /** The plans with one of the rank's lanes replaced. */
    static List<RankPlan> editLane(
            List<RankPlan> plans, int rank, int lane, UnaryOperator<List<Transfer>> edit) {
        return editPlan(
                plans, rank, plan -> copy(plan, edited(plan.lanes(), lane, edit), plan.arrivals()));
    }

    /** The plans with one of the rank's lanes of arrivals replaced. */
    static List<RankPlan> editArrivals(
            List<RankPlan> plans, int rank, int lane, UnaryOperator<List<Transfer>> edit) {
        return editPlan(
                plans, rank, plan -> copy(plan, plan.lanes(), edited(plan.arrivals(), lane, edit)));
    }

    /** The plans with every lane of every rank replaced, and the arrivals to go with them. */
    static List<RankPlan> editEveryLane(List<RankPlan> plans, UnaryOperator<List<Transfer>> edit) {
        List<RankPlan> result = plans;
        for (RankPlan plan : plans) {
            for (Lane lane : plan.lanes()) {
                result = editLane(result, plan.rank(), lane.index(), edit);
            }
        }
        return matchArrivals(result);
    }

    static List<RankPlan> editConsumption(
            List<RankPlan> plans, int rank, UnaryOperator<List<RowBlock>> edit) {
        return editPlan(
                plans, rank, p -> p.withConsumption(edit.apply(new ArrayList<>(p.consumption()))));
    }

    static List<RankPlan> editPlan(List<RankPlan> plans, int rank, UnaryOperator<RankPlan> edit) {
        List<RankPlan> result = new ArrayList<>(plans);
        result.set(rank, edit.apply(result.get(rank)));
        return result;
    }

    /** The plans with arrivals worked out from the lanes of all ranks, the long way. */
    static List<RankPlan> matchArrivals(List<RankPlan> plans) {
        return plans.stream()
                .map(
                        receiver -> {
                            List<Lane> arrivals = new ArrayList<>();
                            for (RankPlan initiator : plans) {
                                for (Lane lane : initiator.lanes()) {
                                    addArrivals(arrivals, lane, receiver.rank());
                                }
                            }
                            return copy(receiver, receiver.lanes(), arrivals);
                        })
                .toList();
    }

    private static void addArrivals(List<Lane> arrivals, Lane lane, int rank) {
        List<Transfer> here = lane.transfers().stream().filter(t -> t.to() == rank).toList();
        if (!here.isEmpty()) {
            arrivals.add(new Lane(lane.index(), here));
        }
    }

    static Transfer withCredit(Transfer t, int credit) {
        return new Transfer(
                t.from(), t.to(), t.source(), t.chunk(), t.tag(), t.initiator(), t.slot(), credit);
    }

    static Transfer withSlot(Transfer t, int slot) {
        return new Transfer(
                t.from(), t.to(), t.source(), t.chunk(), t.tag(), t.initiator(), slot, t.credit());
    }

    static Transfer withEnds(Transfer t, int from, int to) {
        return new Transfer(
                from, to, t.source(), t.chunk(), t.tag(), t.initiator(), t.slot(), t.credit());
    }

    static Transfer withTag(Transfer t, int tag) {
        return new Transfer(
                t.from(), t.to(), t.source(), t.chunk(), tag, t.initiator(), t.slot(), t.credit());
    }

    static Transfer withChunk(Transfer t, int chunk) {
        return new Transfer(
                t.from(), t.to(), t.source(), chunk, t.tag(), t.initiator(), t.slot(), t.credit());
    }

    static Transfer withInitiator(Transfer t, Transfer.Initiator initiator) {
        return new Transfer(
                t.from(), t.to(), t.source(), t.chunk(), t.tag(), initiator, t.slot(), t.credit());
    }

    private static List<Lane> edited(
            List<Lane> lanes, int lane, UnaryOperator<List<Transfer>> edit) {
        List<Lane> result = new ArrayList<>(lanes);
        Lane old = lanes.get(lane);
        result.set(lane, new Lane(old.index(), edit.apply(new ArrayList<>(old.transfers()))));
        return result;
    }

    /** Exchanges two. */
    static <T> UnaryOperator<List<T>> swap(int i, int j) {
        return list -> {
            Collections.swap(list, i, j);
            return list;
        };
    }

    /** Leaves one out. */
    static <T> UnaryOperator<List<T>> without(int index) {
        return items -> {
            items.remove(index);
            return items;
        };
    }

    /** Repeats one. */
    static <T> UnaryOperator<List<T>> twice(int index) {
        return items -> {
            items.add(index, items.get(index));
            return items;
        };
    }

    /** Puts one before all others. */
    static <T> UnaryOperator<List<T>> first(T item) {
        return items -> {
            items.addFirst(item);
            return items;
        };
    }

    /** Replaces one. */
    static <T> UnaryOperator<List<T>> set(int index, T item) {
        return edit(index, old -> item);
    }

    /** Changes one. */
    static <T> UnaryOperator<List<T>> edit(int index, UnaryOperator<T> edit) {
        return items -> {
            items.set(index, edit.apply(items.get(index)));
            return items;
        };
    }

    /** That the check finds a fault and tells it so. */
    static void assertFault(String message, Executable check) {
        PlanException fault = assertThrows(PlanException.class, check);
        assertTrue(fault.getMessage().contains(message), fault.getMessage());
    }

    static RankPlan copy(RankPlan plan, List<Lane> lanes, List<Lane> arrivals) {
        return plan.withLanes(lanes, arrivals);
    }
}
