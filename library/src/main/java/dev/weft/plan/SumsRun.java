package dev.weft.plan;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Transfer;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/**
 * Runs plans that sum symbolically and finds out whether everything finishes. Every lane is a
 * worker that takes its transfers strictly in order. Every rank has one more, which first
 * multiplies its blocks in order and then finishes whole rows in order: a real one that finishes
 * rows earlier does so only where it need not wait, and several do at least as much.
 */
final class SumsRun {

    /** What can happen to a chunk at a rank, or to the sums of a rank at the chunk's owner. */
    private enum Kind {
        MULTIPLIED,
        /** Summed over all of K, where the rank itself has done the last of it. */
        SUMMED,
        PARTIAL_ARRIVED,
        WHOLE_ARRIVED,
        OWN_ARRIVED
    }

    private final List<RankPlan> plans;
    private final List<Integer> added;
    private final SumsIndex index;

    /** Workers: the lanes of all ranks, and after them one per rank that multiplies. */
    private final List<Lane> lanes = new ArrayList<>();

    /** Per rank: the rows that it finishes after all products, in order. */
    private final List<List<RowBlock>> finished = new ArrayList<>();

    /** Per worker: how many of its items are done. */
    private final int[] done;

    /** By kind, rank and tag. */
    private final BitSet happened = new BitSet();

    private final Waiters waiters;

    private SumsRun(List<RankPlan> plans, List<Integer> added, SumsIndex index) {
        this.plans = plans;
        this.added = added;
        this.index = index;
        for (RankPlan plan : plans) {
            lanes.addAll(plan.lanes());
            finished.add(finished(plan));
        }
        this.done = new int[lanes.size() + plans.size()];
        this.waiters = new Waiters(event(Kind.OWN_ARRIVED, plans.size(), 0), done.length);
    }

    /**
     * {@link PlanException} names a waiting transfer or block unless everything finishes.
     *
     * @param added whose sums an owner adds up; empty where sums come as one
     */
    static void run(List<RankPlan> plans, List<Integer> added, SumsIndex index) {
        SumsRun run = new SumsRun(plans, added, index);
        for (int worker = run.waiters.take(); worker >= 0; worker = run.waiters.take()) {
            if (worker < run.lanes.size()) {
                run.runLane(worker);
            } else {
                run.runProducts(worker, run.plans.get(worker - run.lanes.size()));
            }
        }
        run.checkAllFinished();
    }

    private List<RowBlock> finished(RankPlan plan) {
        List<RowBlock> blocks = new ArrayList<>();
        for (int c = 0; !added.isEmpty() && c < plan.chunks().count(plan.rank()); c++) {
            blocks.add(plan.chunks().block(plan.rank(), c));
        }
        for (Lane lane : plan.arrivals()) {
            for (Transfer transfer : lane.transfers()) {
                if (transfer.slot() == Reduction.WHOLE) {
                    blocks.add(plan.chunks().block(transfer.source(), transfer.chunk()));
                }
            }
        }
        return blocks;
    }

    private void runLane(int worker) {
        List<Transfer> transfers = lanes.get(worker).transfers();
        for (; done[worker] < transfers.size(); done[worker]++) {
            Transfer transfer = transfers.get(done[worker]);
            if (waits(event(need(transfer), transfer.from(), transfer.tag()), worker)) {
                return;
            }
            switch (transfer.slot()) {
                case Reduction.PARTIAL ->
                        happens(Kind.PARTIAL_ARRIVED, transfer.to(), transfer.tag());
                case Reduction.WHOLE -> happens(Kind.WHOLE_ARRIVED, transfer.to(), transfer.tag());
                default -> happens(Kind.OWN_ARRIVED, transfer.from(), transfer.tag());
            }
        }
    }

    /** What must have happened to the chunk at the sender. */
    private Kind need(Transfer transfer) {
        if (transfer.slot() != Reduction.WHOLE) {
            return Kind.MULTIPLIED;
        }
        return index.whole(transfer.from(), transfer.tag()) == null
                ? Kind.SUMMED
                : Kind.WHOLE_ARRIVED;
    }

    private void runProducts(int worker, RankPlan plan) {
        int rank = plan.rank();
        List<RowBlock> blocks = plan.consumption();
        for (; done[worker] < blocks.size(); done[worker]++) {
            int tag = tag(blocks.get(done[worker]));
            if (index.partial(rank, tag) != null
                    && waits(event(Kind.PARTIAL_ARRIVED, rank, tag), worker)) {
                return;
            }
            boolean last = done[worker] == blocks.size() - 1;
            if (!plan.pacing().gatherFirst()) {
                multiplied(rank, tag);
            } else if (last) {
                blocks.forEach(block -> multiplied(rank, tag(block)));
            }
        }
        List<RowBlock> rows = finished.get(rank);
        for (; done[worker] < blocks.size() + rows.size(); done[worker]++) {
            int tag = tag(rows.get(done[worker] - blocks.size()));
            int missing = missing(rank, tag);
            if (missing >= 0) {
                waiters.await(missing, worker);
                return;
            }
            if (index.whole(rank, tag) == null) {
                happens(Kind.SUMMED, rank, tag);
            }
        }
    }

    private void multiplied(int rank, int tag) {
        happens(Kind.MULTIPLIED, rank, tag);
        // Who sends sums on has no whole ones; who adds up has them only then.
        if (added.isEmpty() && !index.isHandedOn(rank, tag)) {
            happens(Kind.SUMMED, rank, tag);
        }
    }

    /** What a rank still needs to finish rows, or -1. */
    private int missing(int rank, int tag) {
        if (index.whole(rank, tag) != null) {
            int event = event(Kind.WHOLE_ARRIVED, rank, tag);
            return happened.get(event) ? -1 : event;
        }
        for (int part : added) {
            Kind kind = part == rank ? Kind.MULTIPLIED : Kind.OWN_ARRIVED;
            int event = event(kind, part, tag);
            if (!happened.get(event)) {
                return event;
            }
        }
        return -1;
    }

    private int tag(RowBlock block) {
        return index.chunks().tag(block.source(), block.firstChunk());
    }

    private int event(Kind kind, int rank, int tag) {
        return kind.ordinal() * index.key(plans.size(), 0) + index.key(rank, tag);
    }

    private boolean waits(int event, int worker) {
        if (happened.get(event)) {
            return false;
        }
        waiters.await(event, worker);
        return true;
    }

    private void happens(Kind kind, int rank, int tag) {
        int event = event(kind, rank, tag);
        happened.set(event);
        waiters.wake(event);
    }

    private void checkAllFinished() {
        int worker = 0;
        for (RankPlan plan : plans) {
            for (Lane lane : plan.lanes()) {
                if (done[worker] < lane.transfers().size()) {
                    Transfer transfer = lane.transfers().get(done[worker]);
                    throw waiting(transfer);
                }
                worker++;
            }
        }
        for (RankPlan plan : plans) {
            int blocks = plan.consumption().size();
            if (done[worker] < blocks) {
                throw new PlanException(
                        plan.rank(),
                        plan.consumption().get(done[worker]),
                        "waits forever for sums to go on from");
            }
            List<RowBlock> rows = finished.get(plan.rank());
            if (done[worker] < blocks + rows.size()) {
                throw new PlanException(
                        plan.rank(),
                        rows.get(done[worker] - blocks),
                        "waits forever for whole sums");
            }
            worker++;
        }
    }

    private PlanException waiting(Transfer transfer) {
        String need =
                switch (need(transfer)) {
                    case MULTIPLIED -> "to be multiplied";
                    case SUMMED -> "to be summed over all of K";
                    default -> "to arrive whole";
                };
        return new PlanException(
                transfer.from(),
                transfer,
                "waits forever: transfer from rank %d to rank %d needs the chunk %s at rank %d"
                        .formatted(transfer.from(), transfer.to(), need, transfer.from()));
    }
}
