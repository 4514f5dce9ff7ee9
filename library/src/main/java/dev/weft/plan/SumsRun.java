package dev.weft.plan;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Transfer;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/**
 * Runs plans that sum symbolically, to find out whether everything finishes. Every lane is a worker
 * that takes its transfers strictly in order. Every rank has one more worker, which first
 * multiplies its blocks in order and then finishes whole rows in order. A real worker that finishes
 * rows earlier does so only if it need not wait, and several workers do at least as much.
 */
final class SumsRun {

    /** What can happen to a chunk on a rank, or to the sums of a rank where they are added. */
    private enum Kind {
        MULTIPLIED,
        /** The rank has added all its sums, including its own product. */
        SUMMED,
        PARTIAL_ARRIVED,
        WHOLE_ARRIVED,
        OWN_ARRIVED
    }

    private final List<RankPlan> plans;
    private final SumsIndex index;

    /** Workers: the lanes of all ranks, then one per rank that multiplies. */
    private final List<Lane> lanes = new ArrayList<>();

    /** Per rank, what it does after all products, in order: rows that it adds, then whole rows. */
    private final List<List<RowBlock>> finished = new ArrayList<>();

    /** Per rank: how many of these it adds. */
    private final int[] adding;

    /** Per worker: how many of its items are done. */
    private final int[] done;

    /** By kind, rank and tag. */
    private final BitSet happened = new BitSet();

    /** By rank and tag: whether it multiplies the chunk. */
    private final BitSet multiplies = new BitSet();

    private final Waiters waiters;

    private SumsRun(List<RankPlan> plans, SumsIndex index) {
        this.plans = plans;
        this.index = index;
        this.adding = new int[plans.size()];
        for (RankPlan plan : plans) {
            lanes.addAll(plan.lanes());
            adding[plan.rank()] = plan.added().size();
            List<RowBlock> rows = new ArrayList<>(plan.added());
            rows.addAll(plan.arrivingWhole());
            finished.add(rows);
            plan.consumption().forEach(b -> multiplies.set(index.key(plan.rank(), tag(b))));
        }
        this.done = new int[lanes.size() + plans.size()];
        this.waiters = new Waiters(event(Kind.OWN_ARRIVED, plans.size(), 0), done.length);
    }

    /**
     * Throws a {@link PlanException} that names a waiting transfer or block unless everything
     * finishes.
     */
    static void run(List<RankPlan> plans, SumsIndex index) {
        SumsRun run = new SumsRun(plans, index);
        for (int worker = run.waiters.take(); worker >= 0; worker = run.waiters.take()) {
            if (worker < run.lanes.size()) {
                run.runLane(worker);
            } else {
                run.runProducts(worker, run.plans.get(worker - run.lanes.size()));
            }
        }
        run.checkAllFinished();
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
        int from = transfer.from();
        if (transfer.slot() != Reduction.WHOLE) {
            return index.adds(from, transfer.tag()) ? Kind.SUMMED : Kind.MULTIPLIED;
        }
        return index.whole(from, transfer.tag()) == null ? Kind.SUMMED : Kind.WHOLE_ARRIVED;
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
            int number = done[worker] - blocks.size();
            int tag = tag(rows.get(number));
            boolean adds = number < adding[rank];
            int missing = adds ? missing(rank, tag) : event(Kind.WHOLE_ARRIVED, rank, tag);
            if (missing >= 0 && waits(missing, worker)) {
                return;
            }
            if (adds) {
                happens(Kind.SUMMED, rank, tag);
            }
        }
    }

    private void multiplied(int rank, int tag) {
        happens(Kind.MULTIPLIED, rank, tag);
        // A rank that sends its sums on has no whole ones; a rank that adds has them only
        // afterwards.
        if (!index.adds(rank, tag) && !index.isHandedOn(rank, tag)) {
            happens(Kind.SUMMED, rank, tag);
        }
    }

    /** What a rank still needs to add up a chunk's sums, or -1. */
    private int missing(int rank, int tag) {
        int own = event(Kind.MULTIPLIED, rank, tag);
        if (multiplies.get(index.key(rank, tag)) && !happened.get(own)) {
            return own;
        }
        for (int from = 0; from < plans.size(); from++) {
            Transfer transfer = index.own(from, tag);
            int event = event(Kind.OWN_ARRIVED, from, tag);
            if (transfer != null && transfer.to() == rank && !happened.get(event)) {
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
                        done[worker] < blocks + adding[plan.rank()]
                                ? "waits forever for sums to add"
                                : "waits forever for whole sums");
            }
            worker++;
        }
    }

    private PlanException waiting(Transfer transfer) {
        String need =
                switch (need(transfer)) {
                    case MULTIPLIED -> "to be multiplied";
                    case SUMMED -> "to be summed";
                    default -> "to arrive whole";
                };
        return new PlanException(
                transfer.from(),
                transfer,
                "waits forever: transfer from rank %d to rank %d needs the chunk %s at rank %d"
                        .formatted(transfer.from(), transfer.to(), need, transfer.from()));
    }
}
