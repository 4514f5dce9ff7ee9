package dev.weft.cuda.sums;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CallEvents;
import dev.weft.cuda.exec.Copies;
import dev.weft.cuda.exec.CudaBuffers;
import dev.weft.cuda.exec.DeviceEpilogue;
import dev.weft.cuda.exec.DeviceEvent;
import dev.weft.cuda.exec.DeviceOperands;
import dev.weft.cuda.exec.GatedProduct;
import dev.weft.cuda.exec.LaneCounters;
import dev.weft.cuda.exec.PinnedBuffer;
import dev.weft.cuda.exec.RowRange;
import dev.weft.cuda.exec.TileSchedule;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.sums.SumCopyList.Move;
import dev.weft.cuda.sums.SumCopyList.Parts;
import dev.weft.ffi.CudaStreams;
import dev.weft.op.Operator.View;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Reduction;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Sums of one rank on the GPU whose peers are pinned host memory: what the peers would send lies
 * there, and what this rank sends them goes there. So all that a rank moves crosses the bus, at the
 * same time in both directions and beside the product.
 *
 * <p>Two streams copy in, in turn, so that one moves bytes while the other raises a flag: the tiles
 * that start from a block of sums wait for its flag. Two copy out: they wait for a block's counter,
 * which the tiles raise as they are stored. A wait is queued only after all that it waits for, so
 * it does not matter which streams share a queue of the hardware. It ends even if the sums do not
 * come: then the tiles' own deadline passes, and the grid drains and counts.
 */
public final class HostSums implements SumRun {

    /** Copies that are queued before the grid is, so that it finds work. */
    private static final int LEAD = 4;

    private final SumCopyList list;
    private final boolean productFirst;
    private final int slots;
    private final long flags;
    private final long counters;
    private final int[] perCall;
    private final List<AutoCloseable> owned = new ArrayList<>();

    /** By product and slot; null where nothing is. */
    private final DeviceMatrix[][] sums;

    private final Matrix[][] incoming;
    private final Matrix[][] outgoing;
    private final long[] firstRows;
    private final List<DeviceMatrix> results = new ArrayList<>();
    private final List<GatedProduct> products = new ArrayList<>();
    private final List<GatedProduct> ready = new ArrayList<>();
    private final List<Made> added = new ArrayList<>();
    private final List<Made> finished = new ArrayList<>();
    private final List<GpuStream> in = List.of(GpuStream.urgent(), GpuStream.urgent());
    private final List<GpuStream> out = List.of(GpuStream.urgent(), GpuStream.urgent());
    private final DeviceEvent entered = new DeviceEvent();
    private final DeviceEvent left = new DeviceEvent();
    private int counted;

    /** Rows that are made once a flag is raised, or at once if it is -1. */
    private record Made(DeviceEpilogue.Rows rows, int flag) {}

    /**
     * @param buffers with a word for each flag, and behind them one for each counter
     */
    public HostSums(
            RankPlan plan,
            SumCopyList list,
            Factors factors,
            CudaBuffers buffers,
            Finish finish,
            long deadlineNs) {
        this.list = list;
        this.productFirst = plan.pacing().gatherFirst();
        this.slots = Reduction.slotOf(plan.ranks());
        this.flags = buffers.flags();
        this.counters = flags + 4L * list.origins().size();
        this.perCall = new int[list.counters()];
        int count = factors.sides().size();
        this.sums = new DeviceMatrix[count][slots];
        this.incoming = new Matrix[count][slots];
        this.outgoing = new Matrix[count][slots];
        this.firstRows = new long[slots];
        try (GpuStream stream = GpuStream.create()) {
            for (int i = 0; i < count; i++) {
                allocate(i, factors.columns().get(i), stream);
                if (!list.blocks().get(i).isEmpty()) {
                    multiply(i, factors, buffers, deadlineNs);
                }
            }
            for (int i = 0; i < (finish.joins() ? 1 : count); i++) {
                result(i, factors.columns().get(i), finish, stream);
            }
        } catch (RuntimeException | Error e) {
            close();
            throw e;
        }
    }

    private DeviceMatrix matrix(DType type, long rows, long cols, GpuStream stream) {
        DeviceBuffer buffer =
                DeviceOperands.zeroed(DeviceMatrix.alignedBytes(type, rows, cols), stream);
        owned.add(buffer);
        return DeviceMatrix.in(buffer, type, rows, cols);
    }

    private void allocate(int i, long n, GpuStream stream) {
        for (int slot = 0; slot < slots; slot++) {
            long[] rows = list.rowsOf(slot);
            firstRows[slot] = rows[0];
            if (rows[1] > 0) {
                sums[i][slot] = matrix(DType.FP32, rows[1], n, stream);
            }
            incoming[i][slot] = hostOf(slot, list.in(), n);
            outgoing[i][slot] = hostOf(slot, sent(), n);
        }
    }

    private List<Move> sent() {
        List<Move> all = new ArrayList<>(list.out());
        all.addAll(list.late());
        return all;
    }

    /** All rows up to the last that is moved, so that rows have the numbers that they have in C. */
    private Matrix hostOf(int slot, List<Move> moves, long n) {
        long rows =
                moves.stream()
                        .filter(move -> move.slot() == slot)
                        .mapToLong(move -> move.row() + move.rows())
                        .max()
                        .orElse(0);
        if (rows == 0) {
            return null;
        }
        long pitch = DeviceMatrix.alignedPitch(DType.FP32, n);
        PinnedBuffer memory = PinnedBuffer.allocate(rows * pitch * Float.BYTES);
        owned.add(memory);
        return new Matrix(memory.segment(), DType.FP32, rows, n, pitch);
    }

    private void multiply(int i, Factors factors, CudaBuffers buffers, long deadlineNs) {
        GatedKernel kernel = factors.kernels().get(i);
        DeviceMatrix c = sums[i][Reduction.PARTIAL];
        boolean starts = list.blocks().get(i).getFirst().flag() >= 0;
        TileSchedule gated = TileSchedule.ofSums(list.blocks().get(i), kernel.shape());
        List<RowRange> all = List.of(new RowRange(0, 0, 0, c.rows(), List.of(), false));
        TileSchedule whole = TileSchedule.of(all, c.cols(), kernel.shape());
        ready.add(product(kernel, whole, i, factors, c, starts, buffers, deadlineNs));
        if (productFirst) {
            products.add(ready.getLast());
            return;
        }
        products.add(product(kernel, gated, i, factors, c, starts, buffers, deadlineNs));
        for (int signal : gated.signals()) {
            if (signal >= 0) {
                perCall[signal] += kernel.signalsPerTile();
            }
        }
    }

    private GatedProduct product(
            GatedKernel kernel,
            TileSchedule schedule,
            int i,
            Factors factors,
            DeviceMatrix c,
            boolean starts,
            CudaBuffers buffers,
            long deadlineNs) {
        GatedProduct product =
                new GatedProduct(
                        kernel,
                        schedule,
                        new GatedProduct.Operands(
                                factors.input().stream().map(List::of).toList(),
                                factors.sides().get(i),
                                factors.transposed().get(i),
                                c),
                        buffers.gates(deadlineNs),
                        new GatedProduct.Sums(starts ? c : null, counters));
        owned.add(product);
        return product;
    }

    /** The rows of a result: made of sums, or those themselves if nothing is left to do. */
    private void result(int i, long n, Finish finish, GpuStream stream) {
        List<Parts> parts = list.results();
        boolean inPlace =
                finish.epilogue() == null
                        && finish.type() == DType.FP32
                        && parts.stream().allMatch(part -> part.slots().size() == 1)
                        && parts.stream().map(Parts::slots).distinct().count() == 1;
        if (inPlace) {
            int slot = parts.getFirst().slots().getFirst();
            long first = finish.firstRow() - firstRows[slot];
            results.add(sums[i][slot].rows(first, finish.rows()));
            return;
        }
        DeviceMatrix result = matrix(finish.type(), finish.rows(), n, stream);
        results.add(result);
        for (Parts part : parts) {
            long first = part.row() - finish.firstRow();
            List<DeviceMatrix> from = summed(i, part, finish.adding());
            List<DeviceMatrix> second =
                    finish.joins() ? summed(i + 1, part, finish.adding()) : List.of();
            int flag = part.flags().get(finish.joins() ? i + 1 : i);
            DeviceEpilogue.Rows rows =
                    finish.last().rows(i, from, second, result.rows(first, part.rows()), first);
            finished.add(new Made(rows, flag));
            owned.add(rows);
        }
    }

    /** What a result is made of: the parts, or their sum where that is sent to others as well. */
    private List<DeviceMatrix> summed(int i, Parts part, DeviceEpilogue adding) {
        List<DeviceMatrix> from = part.slots().stream().map(slot -> at(i, part, slot)).toList();
        if (list.late().isEmpty() || from.size() == 1) {
            return from;
        }
        DeviceMatrix whole = at(i, part, Reduction.WHOLE);
        DeviceEpilogue.Rows rows = adding.rows(i, from, List.of(), whole, 0);
        added.add(new Made(rows, part.flags().get(i)));
        owned.add(rows);
        return List.of(whole);
    }

    private DeviceMatrix at(int i, Parts part, int slot) {
        return sums[i][slot].rows(part.row() - firstRows[slot], part.rows());
    }

    @Override
    public void run(int call, View view, GpuStream stream, CallEvents events) {
        enter(stream);
        switch (view) {
            case COMPUTE_ONLY -> ready.forEach(product -> product.launch(call & 1, call, stream));
            case COMM_ONLY -> {
                move(call, 0, false);
                sendLate();
                join(stream);
            }
            case PIPELINED -> {
                if (productFirst) {
                    products.forEach(product -> product.launch(call & 1, call, stream));
                    events.gathered(call, stream);
                    enter(stream);
                    move(call, 0, false);
                } else {
                    int lead = Math.min(LEAD, list.in().size());
                    for (int i = 0; i < lead; i++) {
                        bring(i, call);
                    }
                    products.forEach(product -> product.launch(call & 1, call, stream));
                    counted++;
                    move(call, lead, true);
                }
                finish(call, stream);
                join(stream);
            }
        }
    }

    /** All copies come after what is on {@code stream} now. */
    private void enter(GpuStream stream) {
        entered.record(stream);
        in.forEach(entered::join);
        out.forEach(entered::join);
    }

    /** What comes and what goes, in turn; a copy that waits comes behind what it waits for. */
    private void move(int call, int begun, boolean awaits) {
        int queued = begun;
        int sent = 0;
        while (queued < list.in().size() || sent < list.out().size()) {
            if (queued < list.in().size()) {
                bring(queued++, call);
            }
            while (sent < list.out().size() && list.out().get(sent).after() <= queued) {
                GpuStream on = out.get(sent & 1);
                Move move = list.out().get(sent++);
                if (awaits || move.fromSlot() != Reduction.PARTIAL) {
                    await(move, call, on);
                }
                send(move, on);
                if (queued < list.in().size()) {
                    break;
                }
            }
        }
    }

    private void await(Move move, int call, GpuStream on) {
        if (move.fromSlot() == Reduction.PARTIAL) {
            // Acquire: pairs with the tiles' release in countStored.
            int target = counted * perCall[move.word()];
            CudaStreams.waitValue32(on.handle(), counters + 4L * move.word(), target);
        } else {
            CudaStreams.waitValue32(on.handle(), flags + 4L * move.word(), call);
        }
    }

    private void bring(int index, int call) {
        Move move = list.in().get(index);
        GpuStream on = in.get(index & 1);
        DeviceMatrix to = sums[move.product()][move.slot()];
        Matrix from = incoming[move.product()][move.slot()];
        Copies.copyRows(
                to.at(move.row() - firstRows[move.slot()], move.col()),
                address(from, move),
                to.pitchBytes(),
                width(move, to),
                move.rows(),
                on);
        CudaStreams.writeValue32(on.handle(), flags + 4L * move.word(), call);
    }

    private void send(Move move, GpuStream on) {
        DeviceMatrix from = sums[move.product()][move.fromSlot()];
        Copies.copyRows(
                address(outgoing[move.product()][move.slot()], move),
                from.at(move.row() - firstRows[move.fromSlot()], move.col()),
                from.pitchBytes(),
                width(move, from),
                move.rows(),
                on);
    }

    /** Whole rows with their padding are one piece. */
    private static long width(Move move, DeviceMatrix of) {
        return move.cols() == of.cols() ? of.pitchBytes() : move.cols() * Float.BYTES;
    }

    private static long address(Matrix host, Move move) {
        long offset = move.row() * host.rowPitch() + move.col();
        return host.data().address() + offset * Float.BYTES;
    }

    /** Rows are added and rounded as they come, while others come and go. */
    private void finish(int call, GpuStream stream) {
        added.forEach(made -> make(made, call, stream));
        if (!list.late().isEmpty()) {
            left.record(stream);
            out.forEach(left::join);
            sendLate();
        }
        finished.forEach(made -> make(made, call, stream));
    }

    private void make(Made made, int call, GpuStream stream) {
        // The last copy of each of the two streams: all others have ended by then.
        for (int flag = Math.max(0, made.flag() - 1); flag <= made.flag(); flag++) {
            CudaStreams.waitValue32(stream.handle(), flags + 4L * flag, call);
        }
        made.rows().launch(stream);
    }

    private void sendLate() {
        for (int i = 0; i < list.late().size(); i++) {
            send(list.late().get(i), out.get(i & 1));
        }
    }

    private void join(GpuStream stream) {
        for (GpuStream each : List.of(in.getFirst(), in.getLast(), out.getFirst(), out.getLast())) {
            left.record(each);
            left.join(stream);
        }
    }

    /** What the counters hold at the end of a call, for whoever has to end the waits for them. */
    public LaneCounters awaited() {
        Map<Integer, LaneCounters.Counter> all = new HashMap<>();
        for (int c = 0; c < perCall.length; c++) {
            all.put(c, new LaneCounters.Counter(list.origins().size() + c, perCall[c], 1));
        }
        return new LaneCounters(perCall.length, all, List.of());
    }

    /** What peers send this rank in a slot, [M or fewer, N]; to be written between calls. */
    public Optional<Matrix> incoming(int product, int slot) {
        return Optional.ofNullable(incoming[product][slot]);
    }

    /** What this rank has sent to a peer's slot. */
    public Optional<Matrix> outgoing(int product, int slot) {
        return Optional.ofNullable(outgoing[product][slot]);
    }

    @Override
    public int blocks() {
        return products.isEmpty() ? 0 : products.getFirst().blocks();
    }

    @Override
    public int copies() {
        return list.in().size() + list.out().size() + list.late().size();
    }

    @Override
    public DeviceMatrix product(int index) {
        return results.get(index);
    }

    @Override
    public void close() {
        SumRun.closeAll(owned);
        in.forEach(GpuStream::close);
        out.forEach(GpuStream::close);
        entered.close();
        left.close();
    }
}
