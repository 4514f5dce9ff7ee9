package dev.weft.op;

import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Scratch;
import dev.weft.op.Operator.View;
import dev.weft.op.exec.Arrivals;
import dev.weft.op.exec.CallState;
import dev.weft.op.exec.OperatorMemory;
import dev.weft.op.exec.Releases;
import dev.weft.op.exec.SpanLog;
import dev.weft.op.exec.Summaries;
import dev.weft.op.exec.Worker;
import dev.weft.op.exec.Workspace;
import dev.weft.plan.Chunks;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.lang.foreign.Arena;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/**
 * Takes row blocks in consumption order, waits for the chunks that cover them, and multiplies. Own
 * rows need no wait, so compute starts at once. The workers of a program share its order: each
 * takes the next free block or, if columns are cut into parts, the next free part of a block. So a
 * worker that waits for rows waits for the first missing ones, and everything that others need
 * before buffers are released is done or under way. The programs of a rank run concurrently.
 */
final class ComputeWorker extends Worker {

    private final int index;
    private final RankPlan plan;
    private final Transport fabric;
    private final OperatorMemory memory;
    private final Releases releases;
    private final Summaries summaries;
    private final CallState state;
    private final Gemm gemm;
    private final List<Product> products;
    private final boolean keepGathered;
    private final Scratch scratch;

    /** Null if products are only rounded. */
    private final FinishedRows finished;

    /** Null if A has no scales. */
    private final WidenedRows widened;

    private final RowBlock[] order;
    private final AtomicInteger nextPiece;
    private final int columnParts;

    /** By product: where the parts of its columns begin, followed by N. */
    private final long[][] firstCols;

    private final Arrivals arrivals;
    private final Transfer[] lastArrivals;
    private final Awaited[] starts;
    private final long stepRows;

    ComputeWorker(
            int index,
            Workspace workspace,
            boolean keepGathered,
            Gemm gemm,
            List<Product> products,
            Scaling scaling,
            PreparedEpilogue epilogue,
            Arena arena) {
        super(new SpanLog(name(index, workspace.plan().programs()), spans(workspace)));
        this.index = index;
        this.plan = workspace.plan();
        this.fabric = workspace.fabric();
        this.memory = workspace.memory();
        this.releases = workspace.releases();
        this.summaries = workspace.summaries();
        this.state = workspace.state();
        this.gemm = gemm;
        this.products = products;
        this.keepGathered = keepGathered;
        long widest = products.stream().mapToLong(product -> product.b().n()).max().orElse(0);
        this.scratch = gemm.scratch(plan.chunks().cols(), widest, arena);
        this.finished =
                epilogue == null
                        ? null
                        : new FinishedRows(epilogue, gemm, scratch, products, mostRows(), arena);
        this.widened =
                scaling == null
                        ? null
                        : new WidenedRows(
                                scaling,
                                Math.clamp(mostRows(), 1, gemm.blockRows()),
                                products.getFirst().b().k(),
                                arena);
        int program = index % plan.programs();
        this.order =
                plan.consumption().stream()
                        .filter(block -> block.program() == program)
                        .toArray(RowBlock[]::new);
        this.nextPiece = state.nextPiece[program];
        this.columnParts = workspace.columnParts();
        this.firstCols =
                products.stream()
                        .map(product -> firstCols(product.b().n(), gemm, columnParts))
                        .toArray(long[][]::new);
        this.arrivals = workspace.arrivals();
        this.lastArrivals =
                plan.arrivals().stream().flatMap(ComputeWorker::lasts).toArray(Transfer[]::new);
        this.starts = new Awaited[plan.ranks()];
        for (int r = 0; r < starts.length; r++) {
            // If nothing is multiplied, peers only make a call like this one before they start.
            starts[r] = new Awaited(Awaited.SHARD, r, r, -1, 1, products.isEmpty());
        }
        this.stepRows = stepRows(workspace);
    }

    private static String name(int index, int programs) {
        return programs == 1
                ? "compute-" + index
                : "compute-%d of program-%d".formatted(index / programs, index % programs);
    }

    private long mostRows() {
        return plan.consumption().stream().mapToLong(RowBlock::rows).max().orElse(0);
    }

    /** Where the parts of N columns begin, followed by N. */
    static long[] firstCols(long n, Gemm gemm, int parts) {
        long quanta = Math.ceilDiv(n, gemm.colQuantum());
        return LongStream.rangeClosed(0, parts)
                .map(part -> Math.min(n, quanta * part / parts * gemm.colQuantum()))
                .toArray();
    }

    private static long stepRows(Workspace workspace) {
        return workspace.summaries().active() ? 0 : workspace.plan().pacing().stepRows();
    }

    /** Two waits and a product per piece, a wait per lane or peer; in steps, one per chunk too. */
    private static int spans(Workspace workspace) {
        RankPlan plan = workspace.plan();
        long stepRows = stepRows(workspace);
        int spans = 0;
        for (RowBlock block : plan.consumption()) {
            spans += 3;
            spans += stepRows > 0 ? block.chunkCount() + (int) (block.rows() / stepRows) + 1 : 0;
        }
        long lasts = plan.arrivals().stream().flatMap(ComputeWorker::lasts).count();
        return spans * workspace.columnParts() + plan.ranks() + (int) lasts;
    }

    int index() {
        return index;
    }

    @Override
    public void run() {
        log.clear();
        boolean gatherFirst = plan.pacing().gatherFirst();
        if (state.view == View.COMM_ONLY || gatherFirst && state.view == View.PIPELINED) {
            awaitEverything();
        }
        if (state.view == View.COMM_ONLY) {
            return;
        }
        int pieces = order.length * columnParts;
        for (int i = nextPiece.getAndIncrement(); i < pieces; i = nextPiece.getAndIncrement()) {
            RowBlock block = order[i / columnParts];
            int part = i % columnParts;
            boolean arrives = state.view == View.PIPELINED && block.source() != plan.rank();
            if (arrives && stepRows > 0) {
                multiplyAsItArrives(block, part);
            } else {
                if (arrives) {
                    awaitRows(block);
                }
                multiply(block.source(), block.firstRow(), block.rows(), part);
            }
            releases.used(block.source());
        }
    }

    /** The last transfer from each rank that the lane brings chunks from. */
    private static Stream<Transfer> lasts(Lane lane) {
        Map<Integer, Transfer> lasts = new LinkedHashMap<>();
        lane.transfers().forEach(transfer -> lasts.put(transfer.from(), transfer));
        return lasts.values().stream();
    }

    /** Waits for the last flag of each rank and lane: its chunks arrive in order. */
    private void awaitEverything() {
        for (Transfer last : lastArrivals) {
            long rows = plan.chunks().shards().rows(last.source());
            awaitChunk(last.source(), last.chunk(), 0, rows);
        }
        if (plan.storage() == RankPlan.Storage.IN_PLACE) {
            for (int r = 0; r < starts.length; r++) {
                awaitStart(r, 0, 0);
            }
        }
        if (index == 0) {
            state.gatheredNs = System.nanoTime();
        }
    }

    /** Multiplies the rows of a block that have arrived, if the rest is late. */
    private void multiplyAsItArrives(RowBlock block, int part) {
        int source = block.source();
        int end = block.firstChunk() + block.chunkCount();
        long done = 0;
        for (int c = block.firstChunk(); c < end; c++) {
            awaitChunk(source, c, block.firstRow() + done, block.rows() - done);
            boolean last = c + 1 == end;
            long quantum = gemm.rowQuantum();
            long ready =
                    last
                            ? block.rows() - done
                            : (completeRows(block, c) - done) / quantum * quantum;
            if (last || ready >= stepRows && !hasCome(source, c + 1)) {
                multiply(source, block.firstRow() + done, ready, part);
                done += ready;
            }
        }
    }

    /**
     * The block's leading rows that are complete once all chunks up to {@code chunk} have arrived.
     */
    private long completeRows(RowBlock block, int chunk) {
        Chunks chunks = plan.chunks();
        long rows = (chunk + 1) / chunks.colChunks() * chunks.chunkRows(block.source());
        return Math.clamp(rows - block.firstRow(), 0, block.rows());
    }

    private void awaitRows(RowBlock block) {
        int source = block.source();
        if (plan.storage() == RankPlan.Storage.IN_PLACE) {
            awaitStart(source, block.firstRow(), block.rows());
            return;
        }
        if (summaries.active()) {
            awaitSummaries(block);
        }
        long start = 0;
        for (int c = block.firstChunk(); c < block.firstChunk() + block.chunkCount(); c++) {
            if (!hasCome(source, c)) {
                start = start == 0 ? System.nanoTime() : start;
                long flag = memory.flagAt(source, c);
                Awaited need = arrivals.of(source, c);
                fabric.await(memory.region(), fabric.rank(), flag, state.call, need);
            }
        }
        if (start != 0) {
            int writer = arrivals.of(source, block.firstChunk()).writer();
            log.add(Timeline.Kind.WAIT, source, writer, block.firstRow(), block.rows(), start);
        }
    }

    /** Starts with the last chunk: its counter covers everything the same lane brings before it. */
    private void awaitSummaries(RowBlock block) {
        int source = block.source();
        for (int c = block.firstChunk() + block.chunkCount() - 1; c >= block.firstChunk(); c--) {
            long word = summaries.wordFor(source, c, memory);
            int value = summaries.valueFor(source, c, state.call);
            Awaited need = summaries.awaitedFor(source, c);
            await(fabric.rank(), word, value, need, block.firstRow(), block.rows());
        }
    }

    private boolean hasCome(int source, int chunk) {
        long flag = memory.flagAt(source, chunk);
        Awaited need = arrivals.of(source, chunk);
        return fabric.reached(memory.region(), fabric.rank(), flag, state.call, need);
    }

    private void awaitChunk(int source, int chunk, long firstRow, long rows) {
        long flag = memory.flagAt(source, chunk);
        await(fabric.rank(), flag, state.call, arrivals.of(source, chunk), firstRow, rows);
    }

    private void awaitStart(int rank, long firstRow, long rows) {
        await(rank, OperatorMemory.START_AT, state.call, starts[rank], firstRow, rows);
    }

    private void await(int home, long word, int value, Awaited need, long firstRow, long rows) {
        if (fabric.reached(memory.region(), home, word, value, need)) {
            return;
        }
        long start = System.nanoTime();
        fabric.await(memory.region(), home, word, value, need);
        log.add(Timeline.Kind.WAIT, need.source(), need.writer(), firstRow, rows, start);
    }

    /** {@code blockRow}, the first one, is relative to the shard of {@code source}. */
    private void multiply(int source, long blockRow, long rowCount, int part) {
        long start = System.nanoTime();
        long productRow = plan.chunks().shards().firstRow(source) + blockRow;
        boolean fromShard = source == plan.rank() || plan.storage() == RankPlan.Storage.IN_PLACE;
        Matrix rows =
                fromShard
                        ? memory.shard(source, state.call)
                        : memory.landing(plan.rank(), arrivals.slot(source), state.call);
        long firstRow = blockRow + (fromShard ? 0 : memory.landingRow(source));
        boolean isThere = source == plan.rank() && memory.shardsLand();
        boolean keeps = keepGathered && fromShard && !isThere && part == 0;
        if (keeps && state.view == View.PIPELINED) {
            memory.gathered(plan.rank(), state.call)
                    .copyBlock(
                            rows,
                            firstRow,
                            0,
                            memory.landingRow(source) + blockRow,
                            memory.landingCol(source),
                            rowCount,
                            rows.cols());
        }
        if (widened == null) {
            multiply(rows, firstRow, rowCount, part, productRow);
        } else {
            for (long done = 0; done < rowCount; done += widened.mostRows()) {
                long count = Math.min(widened.mostRows(), rowCount - done);
                Matrix wide = widened.of(rows, firstRow + done, count);
                multiply(wide, 0, count, part, productRow + done);
            }
        }
        log.add(Timeline.Kind.COMPUTE, source, plan.rank(), blockRow, rowCount, start);
    }

    private void multiply(Matrix rows, long firstRow, long rowCount, int part, long productRow) {
        for (int p = 0; p < products.size(); p++) {
            Product product = products.get(p);
            long firstCol = firstCols[p][part];
            long cols = firstCols[p][part + 1] - firstCol;
            Matrix c = product.c(state.call);
            if (finished != null) {
                finished.multiply(p, rows, firstRow, rowCount, firstCol, cols, c, productRow);
            } else {
                gemm.multiply(
                        rows,
                        firstRow,
                        rowCount,
                        product.b(),
                        firstCol,
                        cols,
                        c,
                        productRow,
                        scratch);
            }
            fabric.worked();
        }
    }
}
