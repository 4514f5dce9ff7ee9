package dev.weft.cuda.exec.sum;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CallEvents;
import dev.weft.cuda.exec.CudaBuffers;
import dev.weft.cuda.exec.DeviceRun;
import dev.weft.cuda.exec.sum.SumCopyList.Move;
import dev.weft.cuda.kernel.DeviceEvent;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.GatedProduct;
import dev.weft.cuda.kernel.RowPlaces;
import dev.weft.cuda.kernel.RowRange;
import dev.weft.cuda.kernel.TileSchedule;
import dev.weft.cuda.kernel.TileTimes;
import dev.weft.fabric.FailureReport;
import dev.weft.ffi.CudaMemory;
import dev.weft.ffi.CudaStreams;
import dev.weft.plan.Chunks;
import dev.weft.plan.Shards;
import dev.weft.plan.step.StepPlan;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Sums that come and go through pinned host memory, in both directions at once and beside the
 * product. What is at the other end of that memory is the business of a {@link SumExchange}.
 *
 * <p>Two streams copy in, in turn, so that one moves bytes while the other raises a flag: the tiles
 * that start from a block of sums wait for its flag. Two copy out: they wait for a block's counter,
 * which the tiles raise as they are stored. A stream's wait is queued only after all that it waits
 * for, except for a grid; so it does not matter which streams share a queue of the hardware. A grid
 * that waits for another rank's sums has nothing queued behind it that this rank needs before. All
 * waits end even if sums do not come: the tiles' deadline passes, or closing the operator raises
 * their flags, and the grid drains and counts.
 */
public final class HostSums extends SumRun {

    /** Copies of sums that tiles start from, queued before the grid is, so that it finds work. */
    private static final int LEAD = 4;

    /**
     * Copied by a call that is {@link #runInLine}. On an H200, 2 ranks, K 4096, such calls of 16
     * rows and N 4096 take 64 us instead of 91, those of 100 rows 107 instead of 112, and those of
     * 32 rows and N 14336 (2.8 MB) 142 instead of 154.
     */
    private static final long FEW_BYTES = 4L << 20;

    /** What is queued ends within this time, or never. */
    private static final long SETTLE_NS = 5_000_000_000L;

    private final SumCopyList list;
    private final SumExchange exchange;
    private final boolean productFirst;

    /** By product: copies to this rank that bring what it, or one before it, starts from. */
    private final int[] startingSums;

    private final long flags;
    private final long counters;
    private final int[] perCall;

    /** What the counters hold at the end of the latest call. */
    private final int[] reached;

    /** By product and buffer of the plan; null where nothing is. */
    private final DeviceMatrix[][] sums;

    private final List<GatedProduct> products = new ArrayList<>();
    private final List<GatedProduct> ready = new ArrayList<>();

    /** Of all rows of a call, if they are one row of tiles, that wait for nothing. */
    private final List<GatedProduct> few = new ArrayList<>();

    private final long fewRows;

    /** Whether calls of the rows that are set are {@link #runInLine}. */
    private boolean inLine;

    /** The version of the rows that those are for, where they are not the products of calls. */
    private int versionOfReady;

    private final SumResults made;
    private final List<GpuStream> in = List.of(GpuStream.urgent(), GpuStream.urgent());
    private final List<GpuStream> out = List.of(GpuStream.urgent(), GpuStream.urgent());
    private final DeviceEvent entered = new DeviceEvent();
    private final DeviceEvent left = new DeviceEvent();
    private final JoinedCopies joined = new JoinedCopies();

    /** Behind the latest call's copies: of the streams in, then of those out. */
    private final DeviceEvent[] ends = new DeviceEvent[4];

    private final boolean timed = TileTimes.areKept();

    /** Whether a call is part of a graph. */
    private boolean wasCaptured;

    private final SumTimeline timeline;

    /** Copies of the call that are queued, to this rank and from it. */
    private int fetched;

    private int sent;

    /** Products of the call whose grids are queued: what they make can be waited for. */
    private int launched;

    /**
     * @param plans of all ranks
     * @param chunks what timelines call the rows
     * @param productFirst whether nothing moves before all is multiplied
     * @param exchange closed with this
     * @param buffers with a word for each flag, and behind them one for each counter
     */
    public HostSums(
            int rank,
            List<StepPlan> plans,
            Chunks chunks,
            boolean productFirst,
            SumCopyList list,
            SumExchange exchange,
            Factors factors,
            CudaBuffers buffers,
            Finish finish,
            long deadlineNs) {
        super(rank, plans, chunks.shards(), factors, finish);
        this.list = list;
        this.exchange = exchange;
        this.productFirst = productFirst;
        this.flags = buffers.flags();
        this.counters = flags + 4L * list.origins().size();
        this.perCall = new int[list.counters()];
        this.reached = new int[list.counters()];
        int count = factors.bs().size();
        this.startingSums = new int[count];
        Arrays.setAll(startingSums, product -> list.inOfProducts(product + 1));
        this.sums = new DeviceMatrix[count][list.buffers().size()];
        GatedKernel first = factors.kernels().getFirst();
        this.timeline = new SumTimeline(rank, chunks, list, exchange.isStaged(), first);
        owned.add(timeline);
        Arrays.setAll(ends, i -> timed ? DeviceEvent.timed() : new DeviceEvent());
        this.fewRows = mayRunInLine(chunks.shards().totalRows()) ? first.shape().rows() : 0;
        try (GpuStream stream = GpuStream.create()) {
            for (int i = 0; i < count; i++) {
                allocate(i, stream);
                if (!list.blocks().get(i).isEmpty()) {
                    multiply(i, buffers.gates(deadlineNs));
                }
            }
            this.made =
                    new SumResults(
                            list,
                            finish,
                            rows,
                            sums,
                            factors.columns(),
                            resultCount(),
                            results,
                            owned,
                            timeline,
                            stream);
            rowsInLine(chunks.shards(), stream);
        } catch (RuntimeException | Error e) {
            close();
            throw e;
        }
    }

    /** Whether products have all rows of C, which lie in a call as they do in C. */
    private boolean mayRunInLine(long allRows) {
        return !productFirst
                && !exchange.isStaged()
                && !list.blocks().getFirst().isEmpty()
                && list.buffers().get(list.sums()).rows() == allRows
                && rows.firstOf(rank, list.sums()) == 0;
    }

    /** Sets how the next calls run. */
    private void rowsInLine(Shards shards, GpuStream stream) {
        long count = shards.totalRows();
        inLine = fewRows > 0 && count <= fewRows && bytes() <= FEW_BYTES;
        if (inLine) {
            few.forEach(product -> product.setRows(row -> Math.min(row, count), stream));
        }
    }

    /** That a call copies, both ways. */
    private long bytes() {
        return Stream.concat(list.in().stream(), list.leaving())
                .mapToLong(
                        move ->
                                rows.count(move.row(), move.rows())
                                        * move.cols()
                                        * list.type(move.part().buffer()).bytes())
                .sum();
    }

    private void allocate(int i, GpuStream stream) {
        for (int buffer = StepPlan.C + 1; buffer < sums[i].length; buffer++) {
            long rows = list.buffers().get(buffer).rows();
            if (rows > 0) {
                sums[i][buffer] =
                        SumResults.matrix(
                                list.type(buffer), rows, factors.columns().get(i), owned, stream);
            }
        }
    }

    private void multiply(int i, GatedProduct.Gates gates) {
        GatedKernel kernel = factors.kernels().get(i);
        DeviceMatrix c = sums[i][list.sums()];
        boolean starts = list.blocks().get(i).getFirst().flag() >= 0;
        TileSchedule gated = TileSchedule.ofSums(list.blocks().get(i), kernel.shape());
        List<RowRange> all = List.of(new RowRange(0, 0, 0, c.rows(), List.of(), false));
        TileSchedule whole = TileSchedule.of(all, c.cols(), kernel.shape());
        ready.add(product(whole, i, starts, gates));
        if (productFirst) {
            products.add(ready.getLast());
            return;
        }
        if (fewRows > 0) {
            long rowsAtMost = Math.min(fewRows, c.rows());
            List<RowRange> one = List.of(new RowRange(0, 0, 0, rowsAtMost, List.of(), false));
            TileSchedule tiles = TileSchedule.of(one, c.cols(), kernel.shape());
            few.add(product(tiles, i, starts, gates));
        }
        products.add(product(gated, i, starts, gates));
        timeline.watch(i, products.getLast());
        products.getLast().addSignals(perCall);
    }

    private GatedProduct product(
            TileSchedule schedule, int i, boolean starts, GatedProduct.Gates gates) {
        DeviceMatrix c = sums[i][list.sums()];
        GatedProduct product =
                new GatedProduct(
                        factors.kernels().get(i),
                        schedule,
                        new GatedProduct.Operands(
                                factors.input().stream().map(List::of).toList(),
                                factors.bs().get(i),
                                factors.transposed().get(i),
                                c,
                                new RowPlaces(rows.firstOf(rank, list.sums()), true)),
                        gates,
                        new GatedProduct.Sums(starts ? c : null, counters));
        owned.add(product);
        return product;
    }

    @Override
    void rowsAreSet(Shards shards, GpuStream stream) {
        exchange.setRows(shards);
        rowsInLine(shards, stream);
        if (!inLine) {
            Arrays.fill(perCall, 0);
            for (GatedProduct product : products) {
                product.setRows(rows::at, stream);
                product.addSignals(perCall);
            }
        }
        made.rowsAreSet();
    }

    /** A result that is made in its place begins where its first row has moved to. */
    @Override
    public DeviceMatrix product(int index) {
        return made.product(index, super.product(index));
    }

    @Override
    public void run(int call, View view, GpuStream stream, CallEvents events) {
        fetched = 0;
        sent = 0;
        launched = Integer.MAX_VALUE;
        if (inLine && view == View.PIPELINED) {
            runInLine(call, stream);
            return;
        }
        resetCounters(stream);
        enter(stream);
        if (view == View.COMPUTE_ONLY) {
            if (!productFirst && versionOfReady != rows.version()) {
                versionOfReady = rows.version();
                ready.forEach(product -> product.setRows(rows::at, stream));
            }
            ready.forEach(product -> product.launch(call & 1, call, stream));
            return;
        }
        exchange.begin(call, stream);
        boolean multiplies = view == View.PIPELINED;
        boolean counts = multiplies && !productFirst;
        for (int c = 0; counts && c < reached.length; c++) {
            reached[c] += perCall[c];
        }
        if (counts && !exchange.isStaged()) {
            fetch(Math.min(LEAD, startingSums[startingSums.length - 1]), call);
        }
        launched = 0;
        for (int i = 0; multiplies && i < products.size(); i++) {
            products.get(i).launch(call & 1, call, stream);
            launched++;
            if (counts && exchange.isStaged()) {
                // The next grid would otherwise be pending behind one that waits for other ranks.
                move(startingSums[i], call, true);
            }
        }
        launched = Integer.MAX_VALUE;
        if (multiplies && productFirst) {
            events.firstEnded(call, stream);
            enter(stream);
        }
        move(list.beforeWhole(), call, counts);
        if (multiplies) {
            made.forEachAdded(rows -> make(rows, call, stream));
            if (!list.late().isEmpty()) {
                left.record(stream);
                out.forEach(left::join);
            }
        }
        for (int i = 0; i < list.late().size(); i++) {
            send(list.late().get(i), call, out.get(i & 1));
        }
        move(list.in().size(), call, counts);
        if (multiplies) {
            made.forEachFinished(rows -> make(rows, call, stream));
        }
        join(stream);
        exchange.end();
    }

    /**
     * A call of few rows: copies and products one after the other, on the caller's stream. To move
     * rows beside the product would cost more than it saves: events between streams, flags, and B
     * read once for every block.
     */
    private void runInLine(int call, GpuStream stream) {
        copyIn(startingSums[startingSums.length - 1], call, stream);
        few.forEach(product -> product.launch(call & 1, call, stream));
        copyOut(call, stream);
        copyIn(list.beforeWhole(), call, stream);
        made.forEachAdded(rows -> rows.rows().launch(stream));
        list.late().forEach(move -> copyOut(move, call, stream));
        joined.flush(stream);
        copyIn(list.in().size(), call, stream);
        copyOut(call, stream);
        made.forEachFinished(rows -> rows.rows().launch(stream));
    }

    private void copyIn(int end, int call, GpuStream on) {
        for (; fetched < end; fetched++) {
            copyIn(list.in().get(fetched), call, on);
        }
        joined.flush(on);
    }

    /** What can leave, now that so much has come. */
    private void copyOut(int call, GpuStream on) {
        for (; canSend(); sent++) {
            copyOut(list.out().get(sent), call, on);
        }
        joined.flush(on);
    }

    @Override
    public String obstacleToCapture() {
        return exchange.isStaged()
                ? "a call in which other ranks take part: expected peers that are host memory"
                : null;
    }

    @Override
    public void capture(int call, GpuStream stream) {
        wasCaptured = true;
        int words = list.origins().size();
        if (words > 0 && !inLine) {
            CudaMemory.fill32Async(flags, call - 1, words, stream.handle());
        }
    }

    /** Launches of a graph may have changed the counters, and begin with zero themselves. */
    private void resetCounters(GpuStream stream) {
        if (wasCaptured && reached.length > 0) {
            Arrays.fill(reached, 0);
            CudaMemory.fill32Async(counters, 0, reached.length, stream.handle());
        }
    }

    /** All copies come after what is on {@code stream} now. */
    private void enter(GpuStream stream) {
        entered.record(stream);
        in.forEach(entered::join);
        out.forEach(entered::join);
    }

    /**
     * Queues copies up to number {@code end} of those to this rank, and copies from it, in turn. A
     * copy that waits comes behind what it waits for. Peers may wait for what leaves this rank
     * before they send anything, so if copies in wait for them, all that can leave comes first.
     */
    private void move(int end, int call, boolean awaits) {
        while (true) {
            boolean all = exchange.isStaged() || fetched == list.in().size();
            int most = all ? Integer.MAX_VALUE : 1;
            for (; most > 0 && canSend(); most--) {
                GpuStream on = out.get(sent & 1);
                Move move = list.out().get(sent++);
                if (awaits || !list.isMultiplied(move)) {
                    await(move, call, on);
                }
                send(move, call, on);
            }
            if (fetched >= end) {
                return;
            }
            fetch(fetched + 1, call);
        }
    }

    private boolean canSend() {
        if (sent == list.out().size()) {
            return false;
        }
        Move next = list.out().get(sent);
        return next.after() <= fetched && next.product() < launched;
    }

    private void await(Move move, int call, GpuStream on) {
        if (list.isMultiplied(move)) {
            // Acquire: pairs with the tiles' release in countStored.
            long counter = counters + 4L * move.word();
            CudaStreams.waitValue32(on.handle(), counter, reached[move.word()]);
        } else {
            CudaStreams.waitValue32(on.handle(), flags + 4L * move.word(), call);
        }
    }

    private void fetch(int end, int call) {
        for (; fetched < end; fetched++) {
            Move move = list.in().get(fetched);
            GpuStream on = in.get(fetched & 1);
            exchange.awaitArrival(move, call);
            copyIn(move, call, on);
            joined.flush(on);
            CudaStreams.writeValue32(on.handle(), flags + 4L * move.word(), call);
        }
    }

    private void copyIn(Move move, int call, GpuStream on) {
        long count = rows.count(move.row(), move.rows());
        if (count > 0) {
            SumExchange.Place from = exchange.incoming(move, call, rows.at(move.row()));
            DeviceMatrix to = sums[move.product()][move.part().buffer()];
            joined.add(
                    to.at(rows.in(move.part(), move.row()), move.col()),
                    to.pitchBytes(),
                    from.address(),
                    from.pitchBytes(),
                    move.cols() * to.dtype().bytes(),
                    count,
                    on);
        }
    }

    private void send(Move move, int call, GpuStream on) {
        copyOut(move, call, on);
        joined.flush(on);
        exchange.copiedOut(call, on);
    }

    private void copyOut(Move move, int call, GpuStream on) {
        long count = rows.count(move.row(), move.rows());
        if (count > 0) {
            DeviceMatrix from = sums[move.product()][move.part().buffer()];
            SumExchange.Place to = exchange.outgoing(move, call, rows.at(move.row()));
            joined.add(
                    to.address(),
                    to.pitchBytes(),
                    from.at(rows.in(move.part(), move.row()), move.col()),
                    from.pitchBytes(),
                    move.cols() * from.dtype().bytes(),
                    count,
                    on);
        }
    }

    private void make(SumResults.Launched rows, int call, GpuStream stream) {
        // The last copy of each of the two streams: all others have ended by then.
        for (int flag = Math.max(0, rows.flag() - 1); flag <= rows.flag(); flag++) {
            CudaStreams.waitValue32(stream.handle(), flags + 4L * flag, call);
        }
        rows.rows().launch(stream);
    }

    private void join(GpuStream stream) {
        for (int i = 0; i < ends.length; i++) {
            ends[i].record(i < 2 ? in.get(i) : out.get(i - 2));
            ends[i].join(stream);
        }
    }

    @Override
    public Timeline timeline(int call, View view, CallEvents events, long firstNs, long seenNs) {
        if (!rows.isWhole()) {
            return null;
        }
        if (view == View.COMPUTE_ONLY) {
            return timeline.of(ready, events, call, null, seenNs);
        }
        if (inLine && view == View.PIPELINED) {
            return timeline.of(few, events, call, SumTimeline.Moved.IN_LINE, seenNs);
        }
        long[] ns = new long[ends.length];
        for (int i = 0; timed && i < ns.length; i++) {
            ns[i] = ends[i].nsSince(events.beginOf(call));
        }
        SumTimeline.Moved moved =
                new SumTimeline.Moved(firstNs, Math.max(ns[0], ns[1]), Math.max(ns[2], ns[3]));
        List<GatedProduct> multiplied = view == View.PIPELINED ? products : List.of();
        return timeline.of(multiplied, events, call, moved, seenNs);
    }

    @Override
    public List<Timeline.Track> tracks(long startNs) {
        return exchange.tracks(startNs);
    }

    /**
     * By word: what a counter holds at the end of the latest call. It grows by what that call
     * stores, which depends on its rows.
     */
    public Map<Integer, Integer> reached() {
        Map<Integer, Integer> all = new HashMap<>();
        for (int c = 0; c < reached.length; c++) {
            all.put(list.origins().size() + c, reached[c]);
        }
        return all;
    }

    /** What is at the other end of the host memory. */
    public SumExchange exchange() {
        return exchange;
    }

    @Override
    public int blocks() {
        return products.isEmpty() ? 0 : products.getFirst().blocks();
    }

    @Override
    public int copies() {
        return list.in().size() + (int) list.leaving().count();
    }

    @Override
    public List<FailureReport.Sent> sent(int call) {
        return exchange.sent(call);
    }

    @Override
    public void close() {
        // What a call that failed half-way has queued must not outlive the memory that it copies.
        for (GpuStream each : List.of(in.getFirst(), in.getLast(), out.getFirst(), out.getLast())) {
            left.record(each);
            left.isDoneWithin(SETTLE_NS, () -> {});
            each.close();
        }
        exchange.close();
        DeviceRun.closeAll(owned);
        Arrays.stream(ends).forEach(DeviceEvent::close);
        entered.close();
        left.close();
    }
}
