package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CopyList.LaneCounters;
import dev.weft.cuda.exec.DeviceSteps.RowSum;
import dev.weft.cuda.exec.SumCopyList.Made;
import dev.weft.cuda.exec.SumCopyList.Move;
import dev.weft.cuda.kernel.DeviceEpilogue;
import dev.weft.cuda.kernel.DeviceEvent;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.GatedProduct;
import dev.weft.cuda.kernel.RowRange;
import dev.weft.cuda.kernel.TileSchedule;
import dev.weft.cuda.kernel.TileSchedule.Counter;
import dev.weft.cuda.kernel.TileTimes;
import dev.weft.fabric.FailureReport;
import dev.weft.ffi.CudaStreams;
import dev.weft.plan.Chunks;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

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

    /** By product and buffer of the plan; null where nothing is. */
    private final DeviceMatrix[][] sums;

    private final List<GatedProduct> products = new ArrayList<>();
    private final List<GatedProduct> ready = new ArrayList<>();
    private final List<Launched> added = new ArrayList<>();
    private final List<Launched> finished = new ArrayList<>();
    private final List<GpuStream> in = List.of(GpuStream.urgent(), GpuStream.urgent());
    private final List<GpuStream> out = List.of(GpuStream.urgent(), GpuStream.urgent());
    private final DeviceEvent entered = new DeviceEvent();
    private final DeviceEvent left = new DeviceEvent();

    /** Behind the latest call's copies: of the streams in, then of those out. */
    private final DeviceEvent[] ends = new DeviceEvent[4];

    private final boolean timed = TileTimes.areKept();
    private final SumTimeline timeline;
    private int counted;

    /** Copies of the call that are queued, to this rank and from it. */
    private int fetched;

    private int sent;

    /** Products of the call whose grids are queued: what they make can be waited for. */
    private int launched;

    /** Rows that are made once a flag is raised, or at once if it is -1. */
    private record Launched(DeviceEpilogue.Rows rows, int flag) {}

    /**
     * @param chunks what timelines call the rows
     * @param productFirst whether nothing moves before all is multiplied
     * @param exchange closed with this
     * @param buffers with a word for each flag, and behind them one for each counter
     */
    public HostSums(
            int rank,
            Chunks chunks,
            boolean productFirst,
            SumCopyList list,
            SumExchange exchange,
            Factors factors,
            CudaBuffers buffers,
            Finish finish,
            long deadlineNs) {
        super(factors, finish);
        this.list = list;
        this.exchange = exchange;
        this.productFirst = productFirst;
        this.flags = buffers.flags();
        this.counters = flags + 4L * list.origins().size();
        this.perCall = new int[list.counters()];
        int count = factors.bs().size();
        this.startingSums = new int[count];
        Arrays.setAll(startingSums, product -> list.inOfProducts(product + 1));
        this.sums = new DeviceMatrix[count][list.buffers().size()];
        GatedKernel first = factors.kernels().getFirst();
        this.timeline = new SumTimeline(rank, chunks, list, exchange.isStaged(), first);
        owned.add(timeline);
        Arrays.setAll(ends, i -> timed ? DeviceEvent.timed() : new DeviceEvent());
        try (GpuStream stream = GpuStream.create()) {
            for (int i = 0; i < count; i++) {
                allocate(i, stream);
                if (!list.blocks().get(i).isEmpty()) {
                    multiply(i, buffers.gates(deadlineNs));
                }
            }
            for (int i = 0; i < resultCount(); i++) {
                result(i, factors.columns().get(i), stream);
            }
        } catch (RuntimeException | Error e) {
            close();
            throw e;
        }
    }

    private DeviceMatrix matrix(DType type, long rows, long cols, GpuStream stream) {
        DeviceBuffer buffer =
                DeviceBuffer.zeroed(DeviceMatrix.alignedBytes(type, rows, cols), stream);
        owned.add(buffer);
        return DeviceMatrix.in(buffer, type, rows, cols);
    }

    private void allocate(int i, GpuStream stream) {
        for (int buffer = StepPlan.C + 1; buffer < sums[i].length; buffer++) {
            long rows = list.buffers().get(buffer).rows();
            if (rows > 0) {
                sums[i][buffer] = matrix(list.type(buffer), rows, factors.columns().get(i), stream);
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
        products.add(product(gated, i, starts, gates));
        timeline.watch(i, products.getLast());
        for (int signal : gated.signals()) {
            if (signal >= 0) {
                perCall[signal] += kernel.signalsPerTile();
            }
        }
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
                                c),
                        gates,
                        new GatedProduct.Sums(starts ? c : null, counters));
        owned.add(product);
        return product;
    }

    /** The rows of a result: made of sums, or those themselves if nothing is left to do. */
    private void result(int i, long n, GpuStream stream) {
        if (finish.epilogue() == null && isInPlace(finish.type())) {
            RowSum first = list.results().getFirst().rows();
            Part part = first.parts().getFirst();
            long row = part.firstRow() - first.into().firstRow();
            results.add(sums[i][part.buffer()].rows(row, finish.rows()));
            return;
        }
        DeviceMatrix result = matrix(finish.type(), finish.rows(), n, stream);
        results.add(result);
        for (Made made : list.added()) {
            for (int p = i; p <= (finish.joins() ? i + 1 : i); p++) {
                DeviceEpilogue.Rows rows =
                        finish.adding()
                                .rows(p, parts(p, made), List.of(), at(p, made.rows().into()), 0);
                added.add(new Launched(rows, made.flags().get(p)));
                timeline.makes(made.rows().row(), true, rows);
                owned.add(rows);
            }
        }
        for (Made made : list.results()) {
            Part into = made.rows().into();
            DeviceEpilogue.Rows rows =
                    finish.last()
                            .rows(
                                    i,
                                    parts(i, made),
                                    finish.joins() ? parts(i + 1, made) : List.of(),
                                    result.rows(into.firstRow(), into.rows()),
                                    into.firstRow());
            finished.add(new Launched(rows, made.flags().get(finish.joins() ? i + 1 : i)));
            timeline.makes(made.rows().row(), false, rows);
            owned.add(rows);
        }
    }

    /** Whether the sums of a buffer are the result as they are. */
    private boolean isInPlace(DType type) {
        List<RowSum> all = list.results().stream().map(Made::rows).toList();
        return list.late().isEmpty()
                && list.added().isEmpty()
                && !all.isEmpty()
                && all.stream().allMatch(rows -> rows.parts().size() == 1)
                && all.stream()
                                .map(
                                        rows -> {
                                            Part part = rows.parts().getFirst();
                                            long shift = part.firstRow() - rows.into().firstRow();
                                            return List.of((long) part.buffer(), shift);
                                        })
                                .distinct()
                                .count()
                        == 1
                && list.type(all.getFirst().parts().getFirst().buffer()) == type;
    }

    private List<DeviceMatrix> parts(int i, Made made) {
        return made.rows().parts().stream().map(part -> at(i, part)).toList();
    }

    private DeviceMatrix at(int i, Part part) {
        return sums[i][part.buffer()].rows(part.firstRow(), part.rows());
    }

    @Override
    public void run(int call, View view, GpuStream stream, CallEvents events) {
        fetched = 0;
        sent = 0;
        enter(stream);
        if (view == View.COMPUTE_ONLY) {
            ready.forEach(product -> product.launch(call & 1, call, stream));
            return;
        }
        exchange.begin(call, stream);
        boolean multiplies = view == View.PIPELINED;
        boolean counts = multiplies && !productFirst;
        if (counts) {
            counted++;
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
            added.forEach(made -> make(made, call, stream));
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
            finished.forEach(made -> make(made, call, stream));
        }
        join(stream);
        exchange.end();
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
            int target = counted * perCall[move.word()];
            CudaStreams.waitValue32(on.handle(), counters + 4L * move.word(), target);
        } else {
            CudaStreams.waitValue32(on.handle(), flags + 4L * move.word(), call);
        }
    }

    private void fetch(int end, int call) {
        for (; fetched < end; fetched++) {
            Move move = list.in().get(fetched);
            GpuStream on = in.get(fetched & 1);
            exchange.awaitArrival(move, call);
            SumExchange.Place from = exchange.incoming(move, call);
            DeviceMatrix to = sums[move.product()][move.part().buffer()];
            Copies.copyRows(
                    to.at(move.part().firstRow(), move.col()),
                    to.pitchBytes(),
                    from.address(),
                    from.pitchBytes(),
                    move.cols() * to.dtype().bytes(),
                    move.rows(),
                    on);
            CudaStreams.writeValue32(on.handle(), flags + 4L * move.word(), call);
        }
    }

    private void send(Move move, int call, GpuStream on) {
        DeviceMatrix from = sums[move.product()][move.part().buffer()];
        SumExchange.Place to = exchange.outgoing(move, call);
        Copies.copyRows(
                to.address(),
                to.pitchBytes(),
                from.at(move.part().firstRow(), move.col()),
                from.pitchBytes(),
                move.cols() * from.dtype().bytes(),
                move.rows(),
                on);
        exchange.copiedOut(call, on);
    }

    private void make(Launched made, int call, GpuStream stream) {
        // The last copy of each of the two streams: all others have ended by then.
        for (int flag = Math.max(0, made.flag() - 1); flag <= made.flag(); flag++) {
            CudaStreams.waitValue32(stream.handle(), flags + 4L * flag, call);
        }
        made.rows().launch(stream);
    }

    private void join(GpuStream stream) {
        for (int i = 0; i < ends.length; i++) {
            ends[i].record(i < 2 ? in.get(i) : out.get(i - 2));
            ends[i].join(stream);
        }
    }

    @Override
    public Timeline timeline(int call, View view, CallEvents events, long firstNs, long seenNs) {
        if (view == View.COMPUTE_ONLY) {
            return timeline.of(ready, events, call, null, seenNs);
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

    /** What the counters hold at the end of a call, for whoever has to end the waits for them. */
    public LaneCounters awaited() {
        Map<Integer, Counter> all = new HashMap<>();
        for (int c = 0; c < perCall.length; c++) {
            all.put(c, new Counter(list.origins().size() + c, perCall[c], 1));
        }
        return new LaneCounters(perCall.length, all, List.of());
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
