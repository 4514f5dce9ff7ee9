package dev.weft.sim;

import dev.weft.plan.Chunks;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.Reduction;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Queue;

/**
 * What a simulated rank does with sums, besides its products: it lets lanes have what is
 * multiplied, adds what other ranks have summed alone, and finishes rows that are summed over all
 * of K. Whoever multiplies takes rows to finish before the next block, and once nothing is left to
 * multiply waits for them, as in the executor.
 */
final class SumSteps {

    private final Simulation simulation;
    private final SimulatedRank rank;
    private final Chunks chunks;

    /** Rows that are finished once they are whole, in that order. */
    private final List<RowBlock> whole = new ArrayList<>();

    private int nextWhole;

    /** Rows that this rank was the last to multiply. */
    private final Queue<RowBlock> ended = new ArrayDeque<>();

    /** By tag: whether this rank's sums go to another one, and whether it multiplies the chunk. */
    private final BitSet sent = new BitSet();

    private final BitSet multiplied = new BitSet();

    /** Whether sums of ranks alone are added here. */
    private final boolean adds;

    private int unmultiplied;

    SumSteps(Simulation simulation, SimulatedRank rank) {
        this.simulation = simulation;
        this.rank = rank;
        this.chunks = rank.plan.chunks();
        RankPlan plan = rank.plan;
        this.unmultiplied = plan.consumption().size();
        plan.consumption().forEach(block -> multiplied.set(tag(block)));
        for (Lane lane : plan.lanes()) {
            lane.transfers().stream()
                    .filter(transfer -> transfer.slot() != Reduction.WHOLE)
                    .forEach(transfer -> sent.set(transfer.tag()));
        }
        for (int c = 0; c < chunks.count(plan.rank()); c++) {
            RowBlock own = chunks.block(plan.rank(), c);
            if (parts(own) > 0) {
                whole.add(own);
            }
        }
        this.adds = !whole.isEmpty();
        for (Lane lane : plan.arrivals()) {
            for (Transfer transfer : lane.transfers()) {
                if (transfer.slot() == Reduction.WHOLE) {
                    whole.add(chunks.block(transfer.source(), transfer.chunk()));
                }
            }
        }
    }

    private int tag(RowBlock block) {
        return chunks.tag(block.source(), block.firstChunk());
    }

    private int event(int kind, RowBlock block) {
        return rank.event(kind, tag(block));
    }

    /** Other ranks' sums of a block that arrive by themselves. */
    private int parts(RowBlock block) {
        return rank.arriving(event(SimulatedRank.PARTS, block));
    }

    private boolean arrivesWhole(RowBlock block) {
        return rank.arriving(event(Reduction.WHOLE, block)) > 0;
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
        boolean ends = !adds && !sent.get(tag(block));
        boolean wanted = simulation.scenario.sums().all() || block.source() == rank.plan.rank();
        if (ends && wanted) {
            ended.add(block);
        }
        rank.happen(event(SimulatedRank.MULTIPLIED, block), now, pathNs);
        if (ends && !wanted) {
            rank.happen(event(SimulatedRank.SUMMED, block), now, pathNs);
        }
    }

    /** Rows to be finished now, which the caller is to finish; null for none. */
    RowBlock take() {
        if (!ended.isEmpty()) {
            return ended.remove();
        }
        return hasNext() && isWhole(whole.get(nextWhole)) ? whole.get(nextWhole++) : null;
    }

    /** Whether {@link #take} would give something. */
    boolean isReady() {
        return !ended.isEmpty() || hasNext() && isWhole(whole.get(nextWhole));
    }

    /** Whether there are rows to wait for. */
    boolean hasNext() {
        return nextWhole < whole.size();
    }

    /** The rows to wait for. */
    RowBlock next() {
        return whole.get(nextWhole);
    }

    /** Who sends the last of them. */
    int sender() {
        RowBlock block = next();
        return rank.sender(
                event(arrivesWhole(block) ? Reduction.WHOLE : SimulatedRank.PARTS, block));
    }

    private boolean isWhole(RowBlock block) {
        if (arrivesWhole(block)) {
            return rank.has(event(Reduction.WHOLE, block));
        }
        return rank.has(event(SimulatedRank.PARTS, block))
                && (!addsOwn(block) || rank.has(event(SimulatedRank.MULTIPLIED, block)));
    }

    private boolean addsOwn(RowBlock block) {
        return multiplied.get(tag(block));
    }

    /** Whether sums of several ranks are added before rows are finished. */
    boolean areAdded(RowBlock block) {
        return parts(block) > 0;
    }

    /** When the rows could have been whole at the earliest. */
    double pathNs(RowBlock block) {
        int last = arrivesWhole(block) ? Reduction.WHOLE : SimulatedRank.MULTIPLIED;
        return Math.max(
                rank.pathNs(event(last, block)), rank.pathNs(event(SimulatedRank.PARTS, block)));
    }

    /** Of a block, to be added and finished; none where nothing but transfers is of interest. */
    double elements(RowBlock block) {
        return simulation.view == SimulatedView.COMM_ONLY
                ? 0
                : (double) block.rows() * chunks.cols();
    }

    /** How often an element is added to another; one that comes alone is copied. */
    int additions(RowBlock block) {
        return areAdded(block) ? Math.max(1, parts(block) - (addsOwn(block) ? 0 : 1)) : 0;
    }

    /** Rows are finished. */
    void finished(RowBlock block, double pathNs) {
        double now = simulation.events.now();
        rank.busyUntil(now);
        if (!arrivesWhole(block)) {
            rank.happen(event(SimulatedRank.SUMMED, block), now, pathNs);
        }
    }
}
