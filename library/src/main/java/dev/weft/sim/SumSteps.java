package dev.weft.sim;

import dev.weft.plan.Chunks;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.Reduction;
import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.Queue;

/**
 * What a simulated rank does with sums, besides its products: it lets lanes have what is
 * multiplied, adds what others have summed, and finishes rows that are summed over all of K.
 * Whoever multiplies takes rows to add or finish before the next block, and once nothing is left to
 * multiply waits for them, as in the executor.
 */
final class SumSteps {

    private final Simulation simulation;
    private final SimulatedRank rank;
    private final Chunks chunks;

    /** Rows to which this rank was the last to add anything, and which it wants. */
    private final Queue<Rows> ended = new ArrayDeque<>();

    /** Rows to which others' sums are added, and those that come whole, both in order. */
    private final Queue<Rows> adds = new ArrayDeque<>();

    private final Queue<Rows> whole = new ArrayDeque<>();

    /** By tag: whether this rank's sums go to another one, and whether it multiplies the chunk. */
    private final BitSet sent = new BitSet();

    private final BitSet multiplied = new BitSet();
    private int unmultiplied;

    /**
     * Rows to add or finish.
     *
     * @param arrive whether they come from another rank when they are whole
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

    /** How many ranks' sums of a block come to be added. */
    private int parts(RowBlock block) {
        return rank.arriving(event(SimulatedRank.PARTS, block));
    }

    /** All columns of a block have been multiplied just now. */
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

    /** Rows to be added or finished now, which the caller is to do; null for none. */
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

    /** Who sends the last of them. */
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

    /** When the rows could have been there at the earliest. */
    double pathNs(Rows rows) {
        if (rows.arrive()) {
            return rank.pathNs(event(Reduction.WHOLE, rows.block()));
        }
        return Math.max(
                rank.pathNs(event(SimulatedRank.MULTIPLIED, rows.block())),
                rank.pathNs(event(SimulatedRank.PARTS, rows.block())));
    }

    /** Of rows to be added or finished; none where nothing but transfers is of interest. */
    double elements(Rows rows) {
        return simulation.view == SimulatedView.COMM_ONLY
                ? 0
                : (double) rows.block().rows() * chunks.cols();
    }

    /** How often an element is added to another; one that comes alone is copied. */
    int additions(Rows rows) {
        int parts = rows.arrive() ? 0 : parts(rows.block());
        return parts == 0 ? 0 : Math.max(1, parts - (addsOwn(rows.block()) ? 0 : 1));
    }

    /** Whether elements of C are made of them. */
    boolean areFinished(Rows rows) {
        return rows.arrive() || isFinished(rows.block());
    }

    /** Rows have been added and finished. */
    void done(Rows rows, double pathNs) {
        double now = simulation.events.now();
        rank.busyUntil(now);
        if (!rows.arrive()) {
            rank.happen(event(SimulatedRank.SUMMED, rows.block()), now, pathNs);
        }
    }
}
