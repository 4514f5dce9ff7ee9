package dev.weft.op;

import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.PackedB;
import dev.weft.gemm.RowAdder;
import dev.weft.gemm.Scratch;
import dev.weft.op.Operator.View;
import dev.weft.op.exec.SpanLog;
import dev.weft.op.exec.SumMemory;
import dev.weft.op.exec.Worker;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.Reduction;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Multiplies row blocks in the plan's order, adding each to the sums that arrive for it, and raises
 * the flag that the rank's lanes wait for. Rows with complete sums become rows of the result as
 * soon as possible: workers look for them before each block, and wait for them once nothing is left
 * to multiply.
 *
 * <p>Memory order: a chunk's flag is raised by a release after its sums are written, and pairs with
 * the acquire of the lane that sends them. Arriving chunks are read after an acquire of their flag,
 * which the lane that brings them raises by a release.
 */
final class SumWorker extends Worker {

    private final RankSums shared;
    private final RankPlan plan;
    private final Transport fabric;
    private final SumMemory memory;
    private final Gemm gemm;
    private final Scratch scratch;
    private final RowAdder adder = new RowAdder();

    /** Null if sums travel in fp32. */
    private final WireRows wire;

    private final PreparedEpilogue.Scratch epilogue;
    private final Awaited[] starts;

    SumWorker(int index, RankSums shared, Arena arena) {
        super(new SpanLog("compute-" + index, spans(shared)));
        this.shared = shared;
        this.plan = shared.plan;
        this.fabric = shared.fabric;
        this.memory = shared.memory;
        this.gemm = shared.gemm;
        this.epilogue = shared.epilogue.new Scratch();
        long widest = 0;
        long deepest = 0;
        for (PackedB[] ofRank : shared.sides) {
            for (PackedB side : ofRank) {
                widest = Math.max(widest, side.n());
                deepest = Math.max(deepest, side.k());
            }
        }
        this.wire =
                memory.wire() == DType.FP32
                        ? null
                        : new WireRows(memory.wire(), plan.chunks().cols());
        this.scratch = gemm.scratch(deepest, widest, arena);
        this.starts = new Awaited[plan.ranks()];
        for (int r = 0; r < starts.length; r++) {
            starts[r] = new Awaited(Awaited.SHARD, r, r, -1, 1);
        }
    }

    /** A wait and a product per block and rank, a wait per rank and a sum for what is whole. */
    private static int spans(RankSums shared) {
        return (2 + 2 * shared.plan.ranks()) * shared.order.length * shared.columnParts
                + (2 + shared.plan.ranks()) * shared.adds.blocks.length
                + shared.whole.blocks.length;
    }

    @Override
    public void run() {
        log.clear();
        RowBlock[] order = shared.order;
        AtomicInteger next = shared.state.nextPiece[0];
        int parts = shared.columnParts;
        int pieces = order.length * parts;
        for (int i = next.getAndIncrement(); i < pieces; i = next.getAndIncrement()) {
            while (finishNext(false)) {
                // Rows with complete sums are finished while they are in a near cache.
            }
            multiply(order[i / parts], i % parts);
            // The last one acquires what the others have released.
            boolean last = shared.partsLeft.decrementAndGet(i / parts) == 0;
            if (last && shared.state.view != View.COMPUTE_ONLY) {
                multiplied(order[i / parts]);
            }
        }
        if (shared.state.view != View.COMPUTE_ONLY) {
            while (finishNext(true)) {
                // Until none is left.
            }
        }
    }

    private void multiply(RowBlock block, int columns) {
        int source = block.source();
        int tag = plan.chunks().tag(source, block.firstChunk());
        boolean resume = memory.arrives(Reduction.PARTIAL, tag);
        if (resume && shared.state.view != View.COMPUTE_ONLY) {
            awaitChunk(Reduction.PARTIAL, block);
        }
        if (shared.state.view != View.COMM_ONLY) {
            for (int i = 0; i < shared.parts.length; i++) {
                int r = shared.parts[i];
                if (r != plan.rank() && shared.state.view != View.COMPUTE_ONLY) {
                    awaitStart(r, block);
                }
                multiply(block, columns, r, resume || i > 0);
            }
        }
    }

    /** Adds to the sums there: some of the columns, over the part of K that {@code part} has. */
    private void multiply(RowBlock block, int columns, int part, boolean resume) {
        long start = System.nanoTime();
        Matrix a = part == plan.rank() ? shared.a : memory.input(part, shared.state.call);
        Matrix[] sums = shared.columns(Reduction.PARTIAL);
        long row = firstRow(block);
        for (int i = 0; i < sums.length; i++) {
            long firstCol = shared.firstCols[i][columns];
            gemm.multiply(
                    a,
                    row,
                    block.rows(),
                    shared.sides[part][i],
                    firstCol,
                    shared.firstCols[i][columns + 1] - firstCol,
                    resume,
                    sums[i],
                    row - memory.firstRow(Reduction.PARTIAL),
                    scratch);
            fabric.worked();
        }
        log.add(Timeline.Kind.COMPUTE, block.source(), part, block.firstRow(), block.rows(), start);
    }

    private void multiplied(RowBlock block) {
        if (wire != null && shared.state.view != View.COMM_ONLY) {
            boolean sent = shared.sends(plan.chunks().tag(block.source(), block.firstChunk()));
            Matrix sums = memory.sums(Reduction.PARTIAL, shared.state.call);
            long first = firstRow(block) - memory.firstRow(Reduction.PARTIAL);
            for (long row = first; row < first + block.rows(); row++) {
                wire.round(sums, row, sent);
            }
        }
        boolean productFirst = plan.pacing().gatherFirst();
        if (!productFirst) {
            raise(block, plan.chunks().tag(block.source(), block.firstChunk()));
        } else if (shared.unmultiplied.decrementAndGet() == 0) {
            shared.multipliedNs = System.nanoTime();
            for (RowBlock each : shared.order) {
                raise(each, plan.chunks().tag(each.source(), each.firstChunk()));
            }
        }
    }

    private void raise(RowBlock block, int tag) {
        signal(memory.multipliedAt(tag));
        if (shared.added[tag].length == 0) {
            summed(block, tag);
        }
    }

    private void summed(RowBlock block, int tag) {
        if (shared.finishes(block, tag)) {
            finish(block, Reduction.PARTIAL);
        }
        signal(memory.summedAt(tag));
    }

    /** Release: pairs with the acquire of the lane that sends the chunk. */
    private void signal(long flag) {
        fabric.signal(memory.region(), plan.rank(), flag, shared.state.call);
    }

    /**
     * Adds or finishes the next rows that have arrived. Adding comes first, as others wait for it.
     * If none have arrived and {@code waits} is set, it waits for the next ones.
     *
     * @return whether there may be more
     */
    private boolean finishNext(boolean waits) {
        return take(shared.adds, false)
                || take(shared.whole, false)
                || waits && (take(shared.adds, true) || take(shared.whole, true));
    }

    private boolean take(RankSums.Rows rows, boolean waits) {
        int next = rows.next.get();
        if (next >= rows.blocks.length) {
            return false;
        }
        RowBlock block = rows.blocks[next];
        int tag = plan.chunks().tag(block.source(), block.firstChunk());
        if (!waits && !(rows == shared.whole ? wholeHasCome(tag) : addendsHaveCome(tag))) {
            return false;
        }
        if (!rows.next.compareAndSet(next, next + 1)) {
            return true;
        }
        if (rows == shared.whole) {
            awaitChunk(Reduction.WHOLE, block);
            finish(block, Reduction.WHOLE);
        } else {
            add(block, tag);
            summed(block, tag);
        }
        return true;
    }

    private boolean wholeHasCome(int tag) {
        return reached(memory.flagAt(Reduction.WHOLE, tag));
    }

    private boolean addendsHaveCome(int tag) {
        for (int rank : shared.added[tag]) {
            if (!reached(partAt(rank, tag))) {
                return false;
            }
        }
        return true;
    }

    private boolean reached(long flag) {
        return fabric.reached(memory.region(), plan.rank(), flag, shared.state.call);
    }

    private long partAt(int rank, int tag) {
        return rank == plan.rank()
                ? memory.multipliedAt(tag)
                : memory.flagAt(Reduction.slotOf(rank), tag);
    }

    /** Adds the ranks' sums, in rank order, and leaves them where this rank's own were. */
    private void add(RowBlock block, int tag) {
        for (int rank : shared.added[tag]) {
            if (rank == plan.rank()) {
                Awaited own = shared.multiplied[tag];
                await(plan.rank(), memory.multipliedAt(tag), own, block);
            } else {
                awaitChunk(Reduction.slotOf(rank), block);
            }
        }
        if (shared.state.view == View.COMM_ONLY) {
            return;
        }
        long start = System.nanoTime();
        for (long row = firstRow(block); row < firstRow(block) + block.rows(); row++) {
            if (wire == null) {
                addRow(row, shared.added[tag]);
            } else {
                addWireRow(row, shared.added[tag]);
            }
        }
        log.add(
                Timeline.Kind.COMPUTE,
                block.source(),
                plan.rank(),
                block.firstRow(),
                block.rows(),
                start);
    }

    /**
     * Sums are added up in the first rank's place; the last addition writes to this rank's place.
     */
    private void addRow(long row, int[] added) {
        Matrix own = memory.sums(Reduction.PARTIAL, shared.state.call);
        long ownAt = own.offset(row - memory.firstRow(Reduction.PARTIAL), 0);
        Matrix sums = part(added[0]);
        long at = at(added[0], row);
        if (added.length == 1 && added[0] != plan.rank()) {
            MemorySegment.copy(sums.data(), at, own.data(), ownAt, own.rowBytes());
        }
        for (int i = 1; i < added.length; i++) {
            boolean last = i == added.length - 1;
            adder.add(
                    sums.data(),
                    at,
                    part(added[i]).data(),
                    at(added[i], row),
                    last ? own.data() : sums.data(),
                    last ? ownAt : at,
                    own.cols());
        }
    }

    /** Like {@link #addRow}, for rows that travelled in another type. */
    private void addWireRow(long row, int[] added) {
        for (int i = 0; i < added.length; i++) {
            long at = row - memory.firstRow(slotOf(added[i]));
            wire.add(part(added[i]), at, i == 0);
        }
        Matrix own = memory.sums(Reduction.PARTIAL, shared.state.call);
        wire.store(own, row - memory.firstRow(Reduction.PARTIAL));
    }

    private int slotOf(int rank) {
        return rank == plan.rank() ? Reduction.PARTIAL : Reduction.slotOf(rank);
    }

    /** The sums that have arrived from {@code rank}, or this rank's own. */
    private Matrix part(int rank) {
        return memory.sums(slotOf(rank), shared.state.call);
    }

    private long at(int rank, long row) {
        return part(rank).offset(row - memory.firstRow(slotOf(rank)), 0);
    }

    /** Turns complete sums in a slot into rows of the results. */
    private void finish(RowBlock block, int slot) {
        if (shared.state.view == View.COMM_ONLY) {
            return;
        }
        Matrix[] sums = shared.columns(slot);
        Matrix[] results = shared.results;
        for (int i = 0; i < results.length; i++) {
            epilogue.apply(
                    i,
                    sums[i],
                    results.length < sums.length ? sums[i + 1] : null,
                    firstRow(block) - memory.firstRow(slot),
                    block.rows(),
                    0,
                    results[i].cols(),
                    results[i],
                    firstRow(block) - shared.firstResultRow());
        }
        fabric.worked();
    }

    private long firstRow(RowBlock block) {
        return plan.chunks().shards().firstRow(block.source()) + block.firstRow();
    }

    private void awaitChunk(int slot, RowBlock block) {
        int tag = plan.chunks().tag(block.source(), block.firstChunk());
        await(plan.rank(), memory.flagAt(slot, tag), memory.arrival(slot, tag), block);
    }

    private void awaitStart(int rank, RowBlock block) {
        await(rank, SumMemory.START_AT, starts[rank], block);
    }

    private void await(int home, long word, Awaited need, RowBlock block) {
        int call = shared.state.call;
        if (fabric.reached(memory.region(), home, word, call, need)) {
            return;
        }
        long start = System.nanoTime();
        fabric.await(memory.region(), home, word, call, need);
        log.add(
                Timeline.Kind.WAIT,
                block.source(),
                need.writer(),
                block.firstRow(),
                block.rows(),
                start);
    }
}
