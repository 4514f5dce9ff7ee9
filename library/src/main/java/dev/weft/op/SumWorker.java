package dev.weft.op;

import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.PackedB;
import dev.weft.gemm.RowAdder;
import dev.weft.gemm.Scratch;
import dev.weft.op.Operator.View;
import dev.weft.op.exec.CallState;
import dev.weft.op.exec.OperatorMemory;
import dev.weft.op.exec.SpanLog;
import dev.weft.op.exec.SumMemory;
import dev.weft.op.exec.Worker;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Storage;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.Reduction;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.stream.IntStream;

/**
 * Multiplies row blocks in the plan's order, each on top of the sums that arrive for it, and raises
 * the flag for which the rank's lanes wait. Rows whose sums are whole become rows of the result as
 * soon as they are there: workers look for them before each block, and wait for them once nothing
 * is left to multiply.
 *
 * <p>Memory order: a chunk's flag is raised by a release after its sums are written, and pairs with
 * the acquire of the lane that sends them. Chunks that arrive are read after an acquire of their
 * flag, which the lane that brings them raises by a release.
 */
final class SumWorker extends Worker {

    private static final long LEAST_PART_COLS = 64;

    private final Shared shared;
    private final RankPlan plan;
    private final Transport fabric;
    private final SumMemory memory;
    private final Gemm gemm;
    private final Scratch scratch;
    private final RowAdder adder = new RowAdder();
    private final PreparedEpilogue.Scratch epilogue;
    private final Awaited[] starts;

    /** What the workers of a rank share. */
    static final class Shared {

        final RankPlan plan;
        final Transport fabric;
        final SumMemory memory;
        final CallState state;
        final Gemm gemm;

        /** By rank and right-hand side; of other ranks only where rows are summed in place. */
        final PackedB[][] sides;

        /** Products with the rows of C that this rank gets; one where two are joined. */
        final Matrix[] results;

        final boolean all;

        /** A of the call, where the caller has it, or its place in memory. */
        Matrix a;

        /** What is multiplied, in order. */
        final RowBlock[] order;

        /** Rows to finish, in the order in which they become whole. */
        final RowBlock[] whole;

        /** Whose sums of own rows are added up, in order; empty where there is nothing to add. */
        final int[] added;

        /** By tag: whether sums of this rank go on to another one. */
        private final boolean[] sent;

        /** By half, slot and right-hand side: its columns of the sums there. */
        private final Matrix[][][] columns;

        final PreparedEpilogue epilogue;

        /** By chunk of its own: that this rank has multiplied it. */
        private final Awaited[] multiplied;

        /** Where the parts of each right-hand side's columns begin, and N. */
        final long[][] firstCols;

        final int columnParts;
        final AtomicInteger nextWhole = new AtomicInteger();
        final AtomicInteger unmultiplied = new AtomicInteger();

        /** By block: the parts of its columns that are not multiplied. */
        private final AtomicIntegerArray partsLeft;

        /** When the rank had multiplied all its blocks, where nothing overlaps. */
        volatile long multipliedNs;

        Shared(
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
            this.order = plan.consumption().toArray(RowBlock[]::new);
            this.all = all;
            this.epilogue = epilogue;
            this.added = added();
            this.whole = whole().toArray(RowBlock[]::new);
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
            this.columnParts = columnParts(workers);
            this.firstCols =
                    Arrays.stream(own)
                            .map(side -> ComputeWorker.firstCols(side.n(), gemm, columnParts))
                            .toArray(long[][]::new);
            this.multiplied = new Awaited[plan.chunks().count(plan.rank())];
            Arrays.setAll(multiplied, c -> Awaited.chunk(plan.rank(), plan.rank(), c).within(1));
        }

        /** As few as give every worker a piece, where they are not too narrow for that. */
        private int columnParts(int workers) {
            int parts = 1;
            while (parts * order.length < workers
                    && plan.chunks().cols() >= 2L * parts * LEAST_PART_COLS) {
                parts *= 2;
            }
            return parts;
        }

        /** The ranks whose sums of own rows arrive by themselves, and this one among them. */
        private int[] added() {
            int own = plan.rank();
            int[] others =
                    IntStream.range(0, plan.ranks())
                            .filter(r -> plan.chunks().count(own) > 0)
                            .filter(
                                    r ->
                                            memory.arrives(
                                                    Reduction.slotOf(r), plan.chunks().tag(own, 0)))
                            .toArray();
            boolean multiplies =
                    plan.consumption().stream().anyMatch(block -> block.source() == own);
            return others.length == 0 || !multiplies
                    ? others
                    : IntStream.concat(Arrays.stream(others), IntStream.of(own)).sorted().toArray();
        }

        private List<RowBlock> whole() {
            List<RowBlock> blocks = new ArrayList<>();
            // Own rows first: others wait for them, and with others' rows nobody waits for this.
            for (int c = 0; added.length > 0 && c < plan.chunks().count(plan.rank()); c++) {
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

        Matrix[] columns(int slot) {
            return columns[OperatorMemory.half(state.call)][slot];
        }

        void begin() {
            state.nextPiece[0].set(0);
            nextWhole.set(0);
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

        /** Whether this rank's product is the last that a chunk's sums need. */
        boolean endsHere(int tag) {
            return added.length == 0 && !sent[tag];
        }
    }

    SumWorker(int index, Shared shared, Arena arena) {
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
        this.scratch = gemm.scratch(deepest, widest, arena);
        this.starts = new Awaited[plan.ranks()];
        for (int r = 0; r < starts.length; r++) {
            starts[r] = new Awaited(Awaited.SHARD, r, r, -1, 1);
        }
    }

    /** A wait and a product per block and rank, a wait per rank and a sum for what is whole. */
    private static int spans(Shared shared) {
        return (2 + 2 * shared.plan.ranks()) * shared.order.length * shared.columnParts
                + (2 + shared.plan.ranks()) * shared.whole.length;
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
                // Rows that are whole are finished while they are near.
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
            boolean inPlace = plan.storage() == Storage.SUMS_IN_PLACE;
            int from = inPlace ? 0 : plan.rank();
            int to = inPlace ? plan.ranks() : plan.rank() + 1;
            for (int r = from; r < to; r++) {
                if (r != plan.rank() && shared.state.view != View.COMPUTE_ONLY) {
                    awaitStart(r, block);
                }
                multiply(block, columns, r, resume || r > from);
            }
        }
    }

    /** On top of what is there, some of the columns, over the part of K that {@code part} has. */
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
        int call = shared.state.call;
        fabric.signal(memory.region(), plan.rank(), memory.multipliedAt(tag), call);
        if (shared.endsHere(tag)) {
            if (shared.all || block.source() == plan.rank()) {
                finish(block, Reduction.PARTIAL);
            }
            fabric.signal(memory.region(), plan.rank(), memory.wholeAt(tag), call);
        }
    }

    /**
     * Finishes the next rows that are whole, where there are some or {@code waits}.
     *
     * @return whether there may be more
     */
    private boolean finishNext(boolean waits) {
        int next = shared.nextWhole.get();
        if (next >= shared.whole.length) {
            return false;
        }
        RowBlock block = shared.whole[next];
        if (!waits && !hasCome(block)) {
            return false;
        }
        if (!shared.nextWhole.compareAndSet(next, next + 1)) {
            return true;
        }
        int call = shared.state.call;
        int tag = plan.chunks().tag(block.source(), block.firstChunk());
        if (memory.arrives(Reduction.WHOLE, tag)) {
            awaitChunk(Reduction.WHOLE, block);
            finish(block, Reduction.WHOLE);
        } else {
            add(block, tag);
            finish(block, Reduction.PARTIAL);
            fabric.signal(memory.region(), plan.rank(), memory.wholeAt(tag), call);
        }
        return true;
    }

    private boolean hasCome(RowBlock block) {
        int tag = plan.chunks().tag(block.source(), block.firstChunk());
        if (memory.arrives(Reduction.WHOLE, tag)) {
            return reached(memory.flagAt(Reduction.WHOLE, tag));
        }
        for (int rank : shared.added) {
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

    /** Adds the ranks' sums of own rows, in rank order, and leaves them where its own were. */
    private void add(RowBlock block, int tag) {
        for (int rank : shared.added) {
            if (rank == plan.rank()) {
                Awaited own = shared.multiplied[block.firstChunk()];
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
            addRow(row);
        }
        log.add(
                Timeline.Kind.COMPUTE,
                block.source(),
                plan.rank(),
                block.firstRow(),
                block.rows(),
                start);
    }

    /** The first rank's place takes the sums, and this rank's the last one. */
    private void addRow(long row) {
        Matrix own = memory.sums(Reduction.PARTIAL, shared.state.call);
        long ownAt = own.offset(row - memory.firstRow(Reduction.PARTIAL), 0);
        int[] added = shared.added;
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

    private int slotOf(int rank) {
        return rank == plan.rank() ? Reduction.PARTIAL : Reduction.slotOf(rank);
    }

    /** What {@code rank} has summed of this rank's rows. */
    private Matrix part(int rank) {
        return memory.sums(slotOf(rank), shared.state.call);
    }

    private long at(int rank, long row) {
        return part(rank).offset(row - memory.firstRow(slotOf(rank)), 0);
    }

    /** Makes rows of the results out of whole sums in a slot. */
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
