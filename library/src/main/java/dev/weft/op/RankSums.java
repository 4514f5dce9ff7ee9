package dev.weft.op;

import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.PackedB;
import dev.weft.op.exec.CallState;
import dev.weft.op.exec.OperatorMemory;
import dev.weft.op.exec.SumMemory;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.Reduction;
import dev.weft.plan.cut.Cut;
import dev.weft.tensor.Matrix;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.stream.IntStream;

/**
 * One rank's share of a product that is summed over ranks: what its {@link SumWorker}s read, and
 * how far they have come in a call.
 */
final class RankSums {

    final RankPlan plan;
    final Transport fabric;
    final SumMemory memory;
    final CallState state;
    final Gemm gemm;

    /** By rank and right-hand side; empty for ranks whose part of K is not summed here. */
    final PackedB[][] sides;

    /** The products, with the rows of C that this rank gets; one if two are joined. */
    final Matrix[] results;

    final boolean all;

    /** A of the call: the caller's matrix, or its place in memory. */
    Matrix a;

    /** The ranks whose parts of K this rank sums over, in order. */
    final int[] parts;

    /** The blocks that are multiplied, in order. */
    final RowBlock[] order;

    /** Rows whose sums are added up here, in the order in which they arrive. */
    final Rows adds;

    /** Rows that arrive whole, in that order. */
    final Rows whole;

    /** By tag: the ranks whose sums are added up, in order; empty if there is nothing to add. */
    final int[][] added;

    /** By tag: whether this rank sends its sums to another one. */
    private final boolean[] sent;

    /** By half, slot and right-hand side: its columns of the sums in that slot. */
    private final Matrix[][][] columns;

    final PreparedEpilogue epilogue;

    /** By tag: the wait until this rank has multiplied it. */
    final Awaited[] multiplied;

    /** Where the parts of each right-hand side's columns begin, followed by N. */
    final long[][] firstCols;

    final int columnParts;
    final AtomicInteger unmultiplied = new AtomicInteger();

    /** By block: how many parts of its columns are still to be multiplied. */
    final AtomicIntegerArray partsLeft;

    /** When the rank had multiplied all its blocks, if nothing overlaps. */
    volatile long multipliedNs;

    RankSums(
            RankPlan plan,
            Transport fabric,
            SumMemory memory,
            Gemm gemm,
            PackedB[][] sides,
            Matrix[] results,
            PreparedEpilogue epilogue,
            boolean all,
            int workers) {
        this.plan = plan;
        this.fabric = fabric;
        this.memory = memory;
        this.state = new CallState(1);
        this.gemm = gemm;
        this.sides = sides;
        this.results = results;
        this.parts =
                IntStream.range(0, plan.ranks())
                        .filter(r -> plan.sumsFor(r, fabric.hosts()))
                        .toArray();
        this.order = plan.consumption().toArray(RowBlock[]::new);
        this.all = all;
        this.epilogue = epilogue;
        this.adds = new Rows(plan.added());
        this.whole = new Rows(plan.arrivingWhole());
        this.sent = new boolean[plan.chunks().total()];
        for (Lane lane : plan.lanes()) {
            for (Transfer transfer : lane.transfers()) {
                sent[transfer.tag()] |= transfer.slot() != Reduction.WHOLE;
            }
        }
        PackedB[] own = sides[plan.rank()];
        this.columns = new Matrix[OperatorMemory.HALVES][Reduction.WHOLE + 1][own.length];
        for (int half = 0; half < columns.length; half++) {
            for (int slot = 0; slot < columns[half].length; slot++) {
                Matrix sums = memory.sums(slot, half);
                long firstCol = 0;
                for (int i = 0; i < own.length; i++) {
                    columns[half][slot][i] = sums.block(0, sums.rows(), firstCol, own[i].n());
                    firstCol += own[i].n();
                }
            }
        }
        this.partsLeft = new AtomicIntegerArray(order.length);
        this.columnParts = Cut.sumColumnParts(plan, workers);
        this.firstCols =
                Arrays.stream(own)
                        .map(side -> ComputeWorker.firstCols(side.n(), gemm, columnParts))
                        .toArray(long[][]::new);
        this.multiplied = new Awaited[plan.chunks().total()];
        for (RowBlock block : order) {
            multiplied[plan.chunks().tag(block.source(), block.firstChunk())] =
                    new Awaited(
                            Awaited.OWN_THREAD, plan.rank(), block.source(), block.firstChunk(), 1);
        }
        this.added = new int[plan.chunks().total()][];
        Arrays.setAll(added, this::added);
    }

    /** The ranks whose sums of a chunk arrive to be added, and this rank if it has some. */
    private int[] added(int tag) {
        int[] others =
                IntStream.range(0, plan.ranks())
                        .filter(r -> memory.arrives(Reduction.slotOf(r), tag))
                        .toArray();
        return others.length == 0 || multiplied[tag] == null
                ? others
                : IntStream.concat(Arrays.stream(others), IntStream.of(plan.rank()))
                        .sorted()
                        .toArray();
    }

    Matrix[] columns(int slot) {
        return columns[OperatorMemory.half(state.call)][slot];
    }

    void begin() {
        state.nextPiece[0].set(0);
        adds.next.set(0);
        whole.next.set(0);
        unmultiplied.set(order.length);
        for (int i = 0; i < partsLeft.length(); i++) {
            partsLeft.set(i, columnParts);
        }
        multipliedNs = state.startNs;
    }

    /** The first row of C that the results hold. */
    long firstResultRow() {
        return all ? 0 : plan.chunks().shards().firstRow(plan.rank());
    }

    /** Whether this rank sends a chunk's sums before they are whole. */
    boolean sends(int tag) {
        return sent[tag];
    }

    /** Whether this rank makes a chunk's sums whole and wants its rows. */
    boolean finishes(RowBlock block, int tag) {
        return !sent[tag] && (all || block.source() == plan.rank());
    }

    /** Rows that workers take in order. */
    static final class Rows {

        final RowBlock[] blocks;
        final AtomicInteger next = new AtomicInteger();

        Rows(List<RowBlock> blocks) {
            this.blocks = blocks.toArray(RowBlock[]::new);
        }
    }
}
