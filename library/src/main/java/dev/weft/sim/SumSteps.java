package dev.weft.sim;

import dev.weft.plan.Chunks;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.Reduction;
import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.Queue;

/**
 * What a simulated rank does with sums, besides its products: it gives lanes what is multiplied,
 * adds what others have summed, and finishes rows that are summed over all of K. As in the
 * executor, workers take rows to add or finish before the next block, and wait for them once
 * nothing is left to multiply.
 */
final class SumSteps {

    private final Simulation simulation;
    private final SimulatedRank rank;
    private final Chunks chunks;

    /** Rows that this rank completed by its own product, and wants. */
    private final Queue<Rows> ended = new ArrayDeque<>();

    /** Rows to which others' sums are added, and rows that arrive whole, both in order. */
    private final Queue<Rows> adds = new ArrayDeque<>();

    private final Queue<Rows> whole = new ArrayDeque<>();

    /** By tag: whether this rank sends its sums on, and whether it multiplies the chunk. */
    private final BitSet sent = new BitSet();

    private final BitSet multiplied = new BitSet();
    private int unmultiplied;

    /**
     * Rows to add or finish.
     *
     * @param arrive whether they arrive from another rank, already whole
     */
    record Rows(RowBlock block, boolean arrive) {}

    SumSteps(Simulation simulation, SimulatedRank rank) {
        this.simulation = simulation;
        this.rank = rank;
        this.chunks = rank.plan.chunks();
        this.unmultiplied = rank.plan.consumption().size();
        rank.plan.consumption().forEach(block -> multiplied.set(tag(block)));
        for (Lane lane : rank.plan.lanes()) {
            lane.transfers().stream()
                    .filter(transfer -> transfer.slot() != Reduction.WHOLE)
                    .forEach(transfer -> sent.set(transfer.tag()));
        }
        if (simulation.view != SimulatedView.COMPUTE_ONLY) {
            rank.plan.added().forEach(block -> adds.add(new Rows(block, false)));
            rank.plan.arrivingWhole().forEach(block -> whole.add(new Rows(block, true)));
        }
    }

    private int tag(RowBlock block) {
        return chunks.tag(block.source(), block.firstChunk());
    }

    private int event(int kind, RowBlock block) {
        return rank.event(kind, tag(block));
    }

    /** How many ranks' sums of a block arrive to be added. */
    private int parts(RowBlock block) {
        return rank.arriving(event(SimulatedRank.PARTS, block));
    }

    /** Notes that all columns of a block have just been multiplied. */
    void multiplied(RowBlock block, double pathNs) {
        if (simulation.view == SimulatedView.COMPUTE_ONLY) {
            return;
        }
        unmultiplied--;
        if (!rank.plan.pacing().gatherFirst()) {
            raise(block, pathNs);
        } else if (unmultiplied == 0) {
            rank.plan.consumption().forEach(each -> raise(each, pathNs));
        }
    }

    private void raise(RowBlock block, double pathNs) {
        double now = simulation.events.now();
        boolean ends = parts(block) == 0;
        if (ends && isFinished(block)) {
            ended.add(new Rows(block, false));
        }
        rank.happen(event(SimulatedRank.MULTIPLIED, block), now, pathNs);
        if (ends && !isFinished(block)) {
            rank.happen(event(SimulatedRank.SUMMED, block), now, pathNs);
        }
    }

    /** Whether this rank makes a block's sums whole and wants its rows. */
    private boolean isFinished(RowBlock block) {
        return !sent.get(tag(block))
                && (simulation.scenario.sums().all() || block.source() == rank.plan.rank());
    }

    /** Rows that the caller is to add or finish now; null for none. */
    Rows take() {
        if (!ended.isEmpty()) {
            return ended.remove();
        }
        if (hasCome(adds.peek())) {
            return adds.remove();
        }
        return hasCome(whole.peek()) ? whole.remove() : null;
    }

    /** Whether {@link #take} would give something. */
    boolean isReady() {
        return !ended.isEmpty() || hasCome(adds.peek()) || hasCome(whole.peek());
    }

    /** Whether there are rows to wait for. */
    boolean hasNext() {
        return !adds.isEmpty() || !whole.isEmpty();
    }

    /** The rows to wait for. */
    RowBlock next() {
        return (adds.isEmpty() ? whole : adds).element().block();
    }

    /** The rank that sends the last of them. */
    int sender() {
        return rank.sender(event(adds.isEmpty() ? Reduction.WHOLE : SimulatedRank.PARTS, next()));
    }

    /**
     * @param rows null for none
     */
    private boolean hasCome(Rows rows) {
        if (rows == null) {
            return false;
        }
        if (rows.arrive()) {
            return rank.has(event(Reduction.WHOLE, rows.block()));
        }
        return rank.has(event(SimulatedRank.PARTS, rows.block()))
                && (!addsOwn(rows.block())
                        || rank.has(event(SimulatedRank.MULTIPLIED, rows.block())));
    }

    private boolean addsOwn(RowBlock block) {
        return multiplied.get(tag(block));
    }

    /** The earliest time at which the rows could have been there. */
    double pathNs(Rows rows) {
        if (rows.arrive()) {
            return rank.pathNs(event(Reduction.WHOLE, rows.block()));
        }
        return Math.max(
                rank.pathNs(event(SimulatedRank.MULTIPLIED, rows.block())),
                rank.pathNs(event(SimulatedRank.PARTS, rows.block())));
    }

    /** The elements of rows to be added or finished; 0 if only transfers are priced. */
    double elements(Rows rows) {
        return simulation.view == SimulatedView.COMM_ONLY
                ? 0
                : (double) rows.block().rows() * chunks.cols();
    }

    /** How many additions an element needs; one that arrives alone is copied. */
    int additions(Rows rows) {
        int parts = rows.arrive() ? 0 : parts(rows.block());
        return parts == 0 ? 0 : Math.max(1, parts - (addsOwn(rows.block()) ? 0 : 1));
    }

    /** Whether they become elements of C. */
    boolean areFinished(Rows rows) {
        return rows.arrive() || isFinished(rows.block());
    }

    /** Notes that rows have been added and finished. */
    void done(Rows rows, double pathNs) {
        double now = simulation.events.now();
        rank.busyUntil(now);
        if (!rows.arrive()) {
            rank.happen(event(SimulatedRank.SUMMED, rows.block()), now, pathNs);
        }
    }
}
