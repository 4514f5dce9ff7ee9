package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceEpilogue;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.GatedProduct;
import dev.weft.cuda.kernel.GatedProduct.Sums;
import dev.weft.cuda.kernel.RowRange;
import dev.weft.cuda.kernel.TileSchedule;
import dev.weft.cuda.kernel.TileTimes;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator.View;
import dev.weft.op.Timeline;
import dev.weft.op.Timeline.Kind;
import dev.weft.op.Timeline.Span;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * Sums of ranks that read each other's GPU memory. Either the owner of rows multiplies them over
 * everybody's part of K, in one launch (sums in place); finished rows are then copied to everybody
 * if all ranks want them. Or every rank multiplies its part of K, and adds the parts of all ranks
 * for the rows that it wants.
 *
 * <p>Streams wait for events alone, which are recorded by then: see {@link DevicePeers}.
 */
public final class DirectSums implements SumRun {

    private final Ranks ranks;
    private final int rank;
    private final Factors factors;
    private final Finish finish;
    private final DevicePeers peers;
    private final List<DeviceBuffer> memory = new ArrayList<>();
    private final List<AutoCloseable> owned = new ArrayList<>();
    private final List<GatedProduct> launches = new ArrayList<>();
    private final List<DeviceEpilogue.Rows> finished = new ArrayList<>();
    private final List<DeviceMatrix> results = new ArrayList<>();
    private final List<Push> pushes = new ArrayList<>();
    private final List<Raised> others = new ArrayList<>();
    private final DeviceTimeline tiles;
    private final boolean timed = TileTimes.areKept();

    /** A copy of finished rows to a peer. */
    private record Push(int peer, DeviceMatrix from, DeviceMatrix to) {}

    /**
     * Which rank has which rows and which part of K.
     *
     * @param rows whose rows of C are whose
     * @param inner how K is spread over the ranks
     * @param all whether every rank gets all rows
     * @param inPlace whether owners multiply their rows over all of K
     */
    public record Ranks(Shards rows, Shards inner, boolean all, boolean inPlace) {

        /** Those with a part of K, in its order. */
        private int[] multiplying() {
            return IntStream.range(0, inner.ranks()).filter(r -> inner.rows(r) > 0).toArray();
        }
    }

    /**
     * Collective.
     *
     * @param last kernels that write the results' type, by product
     * @param buffers with A of this rank
     */
    public DirectSums(
            Transport fabric,
            Gpu gpu,
            Ranks ranks,
            Factors factors,
            List<GatedKernel> last,
            Finish finish,
            CudaBuffers buffers,
            long deadlineNs) {
        this.ranks = ranks;
        this.rank = fabric.rank();
        this.factors = factors;
        this.finish = finish;
        this.tiles =
                new DeviceTimeline(
                        rank,
                        new TileTimes.Owners(ranks.rows(), true, List.of(), new int[0]),
                        factors.kernels().getFirst());
        owned.add(tiles);
        try (GpuStream stream = GpuStream.create()) {
            List<DeviceMatrix> shown = new ArrayList<>(factors.sides());
            int count = factors.sides().size();
            int resultCount = finish.joins() ? 1 : count;
            for (int i = 0; i < resultCount; i++) {
                results.add(matrix(finish.type(), finish.rows(), i, stream));
            }
            List<DeviceMatrix> sums = new ArrayList<>();
            long sumRows = ranks.rows().totalRows();
            if (ranks.inPlace()) {
                sumRows = finish.epilogue() == null ? 0 : ranks.rows().rows(rank);
            }
            for (int i = 0; i < count; i++) {
                sums.add(matrix(factors.partType(), sumRows, i, stream));
            }
            shown.addAll(ranks.inPlace() ? results : sums);
            this.peers =
                    new DevicePeers(
                            fabric,
                            gpu,
                            0,
                            1,
                            LongStream.concat(
                                            LongStream.of(
                                                    buffers.address(0),
                                                    buffers.address(1),
                                                    buffers.flags()),
                                            shown.stream().mapToLong(DeviceMatrix::address))
                                    .toArray());
            for (int i = 0; i < count; i++) {
                if (ranks.inPlace()) {
                    multiplyOwnRows(i, sums.get(i), last.get(i), buffers, deadlineNs);
                } else {
                    multiplyOwnPart(i, sums.get(i), buffers, deadlineNs);
                }
            }
            for (int i = 0; i < resultCount; i++) {
                finish(i, sums);
            }
        } catch (RuntimeException | Error e) {
            close();
            memory.forEach(DeviceBuffer::close);
            throw e;
        }
        for (int r = 0; r < fabric.size(); r++) {
            if (r != rank) {
                others.add(new Raised(r, 0, r, Raised.PRODUCT, 0, Awaited.chunk(r, r, 0)));
            }
        }
    }

    private DeviceMatrix matrix(DType type, long rows, int product, GpuStream stream) {
        long cols = factors.columns().get(product);
        long bytes = DeviceMatrix.alignedBytes(type, rows, cols);
        memory.add(DeviceBuffer.zeroed(bytes, stream));
        return DeviceMatrix.in(memory.getLast(), type, rows, cols);
    }

    private DeviceMatrix at(long address, DType type, long rows, long cols) {
        return new DeviceMatrix(address, type, rows, cols, DeviceMatrix.alignedPitch(type, cols));
    }

    /** A of ranks by parity of the call. */
    private List<List<DeviceMatrix>> input(int... of) {
        DType type = factors.input().getFirst().dtype();
        long m = ranks.rows().totalRows();
        List<List<DeviceMatrix>> places = List.of(new ArrayList<>(), new ArrayList<>());
        for (int parity = 0; parity < 2; parity++) {
            for (int r : of) {
                long k = ranks.inner().rows(r);
                places.get(parity).add(at(peers.buffer(r, parity), type, m, k));
            }
        }
        return places;
    }

    private DeviceMatrix side(int of, int product) {
        long k = ranks.inner().rows(of);
        long n = factors.columns().get(product);
        DType type = factors.sides().get(product).dtype();
        long address = peers.result(of, product);
        return factors.transposed().get(product)
                ? at(address, type, n, k)
                : at(address, type, k, n);
    }

    /** Queues, in every call, the product of rows over the parts of K of these ranks. */
    private void launch(
            GatedKernel kernel,
            RowRange rows,
            int product,
            DeviceMatrix to,
            CudaBuffers buffers,
            long deadlineNs,
            int... of) {
        List<DeviceMatrix> sides = IntStream.of(of).mapToObj(r -> side(r, product)).toList();
        launches.add(
                new GatedProduct(
                        kernel,
                        TileSchedule.of(List.of(rows), to.cols(), kernel.shape()),
                        new GatedProduct.Operands(
                                input(of), sides.getFirst(), factors.transposed().get(product), to),
                        buffers.gates(deadlineNs),
                        new Sums(null, 0, sides)));
        owned.add(launches.getLast());
    }

    private void multiplyOwnRows(
            int product,
            DeviceMatrix sums,
            GatedKernel last,
            CudaBuffers buffers,
            long deadlineNs) {
        long count = ranks.rows().rows(rank);
        if (count == 0) {
            return;
        }
        RowRange rows = new RowRange(0, ranks.rows().firstRow(rank), 0, count, List.of(), false);
        boolean rounds = finish.epilogue() == null;
        launch(
                rounds ? last : factors.kernels().get(product),
                rows,
                product,
                rounds ? ownRows(results.get(product)) : sums,
                buffers,
                deadlineNs,
                ranks.multiplying());
    }

    private DeviceMatrix ownRows(DeviceMatrix result) {
        long first = ranks.rows().firstRow(rank) - finish.firstRow();
        return result.rows(first, ranks.rows().rows(rank));
    }

    private void multiplyOwnPart(
            int product, DeviceMatrix sums, CudaBuffers buffers, long deadlineNs) {
        if (ranks.inner().rows(rank) > 0 && sums.rows() > 0) {
            RowRange rows = new RowRange(0, 0, 0, sums.rows(), List.of(), false);
            GatedKernel kernel = factors.kernels().get(product);
            launch(kernel, rows, product, sums, buffers, deadlineNs, rank);
        }
    }

    private void finish(int product, List<DeviceMatrix> sums) {
        DeviceMatrix result = results.get(product);
        if (!ranks.inPlace()) {
            List<DeviceMatrix> second = finish.joins() ? parts(product + 1) : List.of();
            add(finish.last().rows(product, parts(product), second, result, 0));
            return;
        }
        DeviceMatrix own = ownRows(result);
        if (finish.epilogue() != null) {
            List<DeviceMatrix> second = finish.joins() ? List.of(sums.get(product + 1)) : List.of();
            long first = ranks.rows().firstRow(rank) - finish.firstRow();
            add(finish.last().rows(product, List.of(sums.get(product)), second, own, first));
        }
        for (int r = 0; ranks.all() && r < ranks.rows().ranks(); r++) {
            if (r != rank) {
                int index = factors.sides().size() + product;
                DeviceMatrix theirs =
                        at(peers.result(r, index), result.dtype(), result.rows(), result.cols());
                pushes.add(new Push(r, own, ownRows(theirs)));
            }
        }
    }

    private void add(DeviceEpilogue.Rows rows) {
        finished.add(rows);
        owned.add(rows);
    }

    /** What every rank has multiplied, of the rows that this one wants. */
    private List<DeviceMatrix> parts(int product) {
        List<DeviceMatrix> parts = new ArrayList<>();
        int index = factors.sides().size() + product;
        for (int r : ranks.multiplying()) {
            parts.add(
                    at(
                                    peers.result(r, index),
                                    factors.partType(),
                                    ranks.rows().totalRows(),
                                    factors.columns().get(product))
                            .rows(finish.firstRow(), finish.rows()));
        }
        return parts;
    }

    @Override
    public void run(int call, View view, GpuStream stream, CallEvents events) {
        // All ranks' A are in place, and no rank still reads results of the call before.
        others.forEach(peer -> peers.awaitRows(peer.by(), call, stream));
        if (view != View.COMM_ONLY) {
            launches.forEach(launch -> launch.launch(call & 1, call, stream));
        }
        if (view == View.COMPUTE_ONLY) {
            return;
        }
        if (!ranks.inPlace()) {
            events.gathered(call, stream);
            meet(call, stream);
        }
        finished.forEach(rows -> rows.launch(stream));
        if (ranks.inPlace() && ranks.all()) {
            pushes.forEach(push -> push.to().copyFrom(push.from(), stream));
            meet(call, stream);
        }
    }

    /** Lets {@code stream} wait until all ranks have come to this place of theirs. */
    private void meet(int call, GpuStream stream) {
        peers.raise(rank, 0, Raised.PRODUCT, 0, call, stream);
        peers.awaitQueued(others, call);
        peers.awaitDone(others, stream);
    }

    /** Null without times of tiles: what they did would be missing. */
    @Override
    public Timeline timeline(int call, View view, CallEvents events, long seenNs) {
        boolean multiplies = view != View.COMM_ONLY;
        boolean moves = view != View.COMPUTE_ONLY;
        return timed
                ? tiles.of(
                        multiplies ? launches : List.of(),
                        events,
                        call,
                        seenNs,
                        (times, zeroNs) ->
                                moves ? tracks(times, zeroNs, events.elapsedNs(call)) : List.of())
                : null;
    }

    /** Rows are pushed between when they are finished and the end of the call. */
    private List<Timeline.Track> tracks(List<TileTimes.Times> times, long zeroNs, long elapsedNs) {
        List<Timeline.Track> tracks = new ArrayList<>();
        List<Span> made = new ArrayList<>();
        long firstRow = ranks.inPlace() ? ranks.rows().firstRow(rank) : finish.firstRow();
        long count = ranks.inPlace() ? ranks.rows().rows(rank) : finish.rows();
        for (DeviceEpilogue.Rows rows : finished) {
            made.addAll(SumTimeline.spans(rows, ranks.rows(), firstRow, count, zeroNs, elapsedNs));
        }
        if (!made.isEmpty()) {
            tracks.add(new Timeline.Track("finish", made));
        }
        long doneNs = times.stream().mapToLong(one -> one.ends()[1]).max().orElse(0);
        doneNs = Math.max(doneNs, made.stream().mapToLong(Span::endNs).max().orElse(0));
        List<Span> copies = new ArrayList<>();
        for (Push push : pushes) {
            long rows = push.from().rows();
            long bytes = rows * push.from().cols() * finish.type().bytes();
            copies.add(
                    new Span(
                                    Kind.TRANSFER,
                                    rank,
                                    push.peer(),
                                    push.peer(),
                                    -1,
                                    0,
                                    rows,
                                    bytes,
                                    Math.min(doneNs, elapsedNs),
                                    elapsedNs)
                            .asEstimated());
        }
        if (!copies.isEmpty()) {
            tracks.add(new Timeline.Track("copies-out", copies));
        }
        return tracks;
    }

    public DevicePeers peers() {
        return peers;
    }

    /** What peers may read; the operator frees it when none does any more. */
    public List<DeviceBuffer> memory() {
        return memory;
    }

    @Override
    public int blocks() {
        return launches.isEmpty() ? 0 : launches.getFirst().blocks();
    }

    @Override
    public int copies() {
        return pushes.size();
    }

    @Override
    public DeviceMatrix product(int index) {
        return results.get(index);
    }

    @Override
    public void close() {
        SumRun.closeAll(owned);
    }
}
