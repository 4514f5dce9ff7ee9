package dev.weft.cuda.exec.sum;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CallEvents;
import dev.weft.cuda.exec.CudaBuffers;
import dev.weft.cuda.exec.DevicePeers;
import dev.weft.cuda.exec.DeviceRun;
import dev.weft.cuda.exec.DeviceSteps.RowSum;
import dev.weft.cuda.exec.DeviceTimeline;
import dev.weft.cuda.exec.sum.LinkedProgram.Item;
import dev.weft.cuda.exec.sum.LinkedProgram.Product;
import dev.weft.cuda.kernel.DeviceEpilogue;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.GatedProduct;
import dev.weft.cuda.kernel.GatedProduct.Sums;
import dev.weft.cuda.kernel.RowPlaces;
import dev.weft.cuda.kernel.RowRange;
import dev.weft.cuda.kernel.TileSchedule;
import dev.weft.cuda.kernel.TileTimes;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import dev.weft.trace.Timeline.Span;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * Sums of ranks that read each other's GPU memory: all work of a call is queued on the caller's
 * stream, in the order of a {@link LinkedProgram}.
 *
 * <p>Streams wait for events alone, which are recorded by then: see {@link DevicePeers}.
 */
public final class LinkedSums extends SumRun {

    private final List<StepPlan> plans;
    private final Shards shards;
    private final Shards kParts;
    private final boolean productFirst;
    private final LinkedProgram program;
    private final DevicePeers peers;
    private final List<DeviceBuffer> memory = new ArrayList<>();

    /** By item. */
    private final List<List<GatedProduct>> launches = new ArrayList<>();

    private final List<List<Made>> sums = new ArrayList<>();
    private final List<List<Push>> pushes = new ArrayList<>();
    private final DeviceTimeline tiles;

    /** Rows of one product that a kernel adds and rounds. */
    private record Made(RowSum sum, int product, DeviceEpilogue.Rows by) {}

    /** A copy to a peer. */
    private record Push(int peer, DeviceMatrix from, DeviceMatrix to) {}

    /**
     * Collective.
     *
     * @param plans of all ranks
     * @param shards whose rows of C are whose
     * @param kParts how K is spread over the ranks
     * @param productFirst whether the call tells when its products had ended
     * @param last kernels that write the results' type, by product
     * @param buffers with A of this rank
     */
    public LinkedSums(
            Transport fabric,
            Gpu gpu,
            List<StepPlan> plans,
            Shards shards,
            Shards kParts,
            boolean productFirst,
            Factors factors,
            List<GatedKernel> last,
            Finish finish,
            CudaBuffers buffers,
            long deadlineNs) {
        super(fabric.rank(), plans, shards, factors, finish);
        this.plans = plans;
        this.shards = shards;
        this.kParts = kParts;
        this.productFirst = productFirst;
        this.program = LinkedProgram.of(plans, rank, finish.epilogue() == null);
        this.tiles =
                new DeviceTimeline(
                        rank,
                        new TileTimes.Owners(shards, true, List.of(), new int[0]),
                        factors.kernels().getFirst());
        owned.add(tiles);
        try (GpuStream stream = GpuStream.create()) {
            this.peers =
                    new DevicePeers(
                            fabric,
                            gpu,
                            Math.ceilDiv(program.mostItems(), 2),
                            program.mostItems(),
                            shown(buffers, stream));
            for (Item item : program.items()) {
                launches.add(products(item.products(), last, buffers, deadlineNs));
                sums.add(item.sums().stream().flatMap(sum -> sums(sum).stream()).toList());
                pushes.add(pushes(item));
            }
        } catch (RuntimeException | Error e) {
            close();
            memory.forEach(DeviceBuffer::close);
            throw e;
        }
    }

    /** The places of A, the flags, all Bs, and then by buffer and product what peers may reach. */
    private long[] shown(CudaBuffers buffers, GpuStream stream) {
        LongStream.Builder shown = LongStream.builder();
        shown.add(buffers.address(0)).add(buffers.address(1)).add(buffers.flags());
        factors.bs().forEach(b -> shown.add(b.address()));
        int most = plans.stream().mapToInt(plan -> plan.buffers().size()).max().orElseThrow();
        for (int buffer = StepPlan.C; buffer < most; buffer++) {
            for (int i = 0; i < factors.bs().size(); i++) {
                DeviceMatrix matrix = shape(rank, buffer, i, 1);
                memory.add(
                        DeviceBuffer.zeroed(
                                DeviceMatrix.alignedBytes(
                                        matrix.dtype(), matrix.rows(), matrix.cols()),
                                stream));
                long address = memory.getLast().address();
                shown.add(address);
                if (buffer == StepPlan.C && i < resultCount()) {
                    results.add(shape(rank, buffer, i, address));
                }
            }
        }
        return shown.build().toArray();
    }

    /** A buffer's part for one product, at an address; without rows if nobody uses it. */
    private DeviceMatrix shape(int of, int buffer, int product, long address) {
        List<Buffer> all = plans.get(of).buffers();
        Buffer one = buffer < all.size() ? all.get(buffer) : null;
        // The steps of products that finish by themselves leave their sums unused.
        boolean used = one != null && (buffer == StepPlan.C || isUsed(of, buffer));
        DType type =
                buffer == StepPlan.C
                        ? finish.type()
                        : one != null && one.kind() == Buffer.Kind.ROUNDED_SUMS
                                ? DType.BF16
                                : DType.FP32;
        long n = factors.columns().get(product);
        long cols = buffer == StepPlan.C ? finish.cols(n) : n;
        boolean joined = buffer == StepPlan.C && product >= resultCount();
        return at(address, type, used && !joined ? one.rows() : 0, cols);
    }

    /** Only for this rank's own memory is it known; that of others is as large as they say. */
    private boolean isUsed(int of, int buffer) {
        return of != rank
                || program.items().stream()
                        .anyMatch(
                                item ->
                                        item.products().stream()
                                                        .anyMatch(p -> p.into().buffer() == buffer)
                                                || item.sums().stream()
                                                        .anyMatch(s -> s.into().buffer() == buffer))
                || !program.arriving().isEmpty();
    }

    private static DeviceMatrix at(long address, DType type, long rows, long cols) {
        return new DeviceMatrix(address, type, rows, cols, DeviceMatrix.alignedPitch(type, cols));
    }

    /** The rows of a part, which begins with this row of C, for one product, at whichever rank. */
    private DeviceMatrix matrix(Part part, long row, int product) {
        return buffer(part, product).rows(rows.in(part, row), rows.count(row, part.rows()));
    }

    private DeviceMatrix buffer(Part part, int product) {
        int count = factors.bs().size();
        int index = count + (part.buffer() - StepPlan.C) * count + product;
        long address = peers.result(part.rank(), index);
        return shape(part.rank(), part.buffer(), product, address);
    }

    /** A of ranks by parity of the call. */
    private List<List<DeviceMatrix>> input(List<Integer> of) {
        DType type = factors.input().getFirst().dtype();
        List<List<DeviceMatrix>> places = new ArrayList<>();
        for (int parity = 0; parity < 2; parity++) {
            List<DeviceMatrix> place = new ArrayList<>();
            for (int r : of) {
                long address = peers.buffer(r, parity);
                place.add(at(address, type, shards.totalRows(), kParts.rows(r)));
            }
            places.add(place);
        }
        return places;
    }

    private DeviceMatrix b(int of, int product) {
        long k = kParts.rows(of);
        long n = factors.columns().get(product);
        DType type = factors.bs().get(product).dtype();
        long address = peers.result(of, product);
        return factors.transposed().get(product)
                ? at(address, type, n, k)
                : at(address, type, k, n);
    }

    /** A launch for each product, and for each buffer and list of parts of K. */
    private List<GatedProduct> products(
            List<Product> all, List<GatedKernel> last, CudaBuffers buffers, long deadlineNs) {
        Map<List<?>, List<Product>> alike = new LinkedHashMap<>();
        for (Product one : all) {
            List<?> key = List.of(one.parts(), one.into().buffer());
            alike.computeIfAbsent(key, k -> new ArrayList<>()).add(one);
        }
        List<GatedProduct> made = new ArrayList<>();
        for (List<Product> group : alike.values()) {
            for (int i = 0; i < factors.bs().size(); i++) {
                GatedKernel kernel =
                        group.getFirst().into().buffer() == StepPlan.C
                                ? last.get(i)
                                : factors.kernels().get(i);
                made.add(product(group, i, kernel, buffers.gates(deadlineNs)));
                owned.add(made.getLast());
            }
        }
        return made;
    }

    private GatedProduct product(
            List<Product> group, int product, GatedKernel kernel, GatedProduct.Gates gates) {
        Part into = group.getFirst().into();
        List<RowRange> ranges =
                group.stream()
                        .map(
                                one ->
                                        new RowRange(
                                                0,
                                                one.firstRow(),
                                                one.into().firstRow(),
                                                one.into().rows(),
                                                List.of(),
                                                false))
                        .toList();
        List<Integer> parts = group.getFirst().parts();
        List<DeviceMatrix> bs = parts.stream().map(r -> b(r, product)).toList();
        DeviceMatrix to = buffer(into, product);
        return new GatedProduct(
                kernel,
                TileSchedule.of(ranges, to.cols(), kernel.shape()),
                new GatedProduct.Operands(
                        input(parts),
                        bs.getFirst(),
                        factors.transposed().get(product),
                        to,
                        new RowPlaces(rows.firstOf(rank, into.buffer()), true)),
                gates,
                new Sums(null, 0, bs));
    }

    private List<Made> sums(RowSum sum) {
        List<Made> made = new ArrayList<>();
        boolean last = sum.into().buffer() == StepPlan.C;
        for (int i = 0; i < (last ? resultCount() : factors.bs().size()); i++) {
            DeviceEpilogue by = last ? finish.last() : finish.adding();
            DeviceEpilogue.Rows one =
                    by.rows(i, addends(sum, i), seconds(sum, i), target(sum, i), firstRow(sum));
            owned.add(one);
            made.add(new Made(sum, i, one));
        }
        return made;
    }

    private List<DeviceMatrix> seconds(RowSum sum, int product) {
        boolean joins = sum.into().buffer() == StepPlan.C && finish.joins();
        return joins ? addends(sum, product + 1) : List.of();
    }

    private DeviceMatrix target(RowSum sum, int product) {
        return matrix(sum.into(), sum.row(), product);
    }

    /** In the residual, which only results have. */
    private long firstRow(RowSum sum) {
        return sum.into().buffer() == StepPlan.C ? rows.in(sum.into(), sum.row()) : 0;
    }

    @Override
    void rowsAreSet(Shards next, GpuStream stream) {
        for (Item item : program.items()) {
            // Refuses rows that it cannot place.
            item.products().forEach(one -> rows.in(one.into(), one.firstRow()));
        }
        launches.stream().flatMap(List::stream).forEach(launch -> launch.setRows(rows::at, stream));
        for (Made made : sums.stream().flatMap(List::stream).toList()) {
            RowSum sum = made.sum();
            int i = made.product();
            made.by().set(addends(sum, i), seconds(sum, i), target(sum, i), firstRow(sum));
        }
        for (int i = 0; i < pushes.size(); i++) {
            pushes.set(i, pushes(program.items().get(i)));
        }
    }

    private List<DeviceMatrix> addends(RowSum sum, int product) {
        return sum.parts().stream().map(part -> matrix(part, sum.row(), product)).toList();
    }

    private List<Push> pushes(Item item) {
        return item.moves().stream().flatMap(move -> pushes(move).stream()).toList();
    }

    private List<Push> pushes(RowSum move) {
        Part from = move.parts().getFirst();
        int count = from.buffer() == StepPlan.C ? resultCount() : factors.bs().size();
        return IntStream.range(0, count)
                .mapToObj(
                        i ->
                                new Push(
                                        move.into().rank(),
                                        matrix(from, move.row(), i),
                                        target(move, i)))
                .toList();
    }

    @Override
    public void run(int call, View view, GpuStream stream, CallEvents events) {
        // All ranks' A are in place, and no rank still reads results of the call before.
        peers.awaitAllRows(call, stream);
        boolean moves = view != View.COMPUTE_ONLY;
        if (moves && productFirst && launches.stream().allMatch(List::isEmpty)) {
            events.firstEnded(call, stream);
        }
        for (int i = 0; i < program.items().size(); i++) {
            Item item = program.items().get(i);
            if (moves) {
                peers.awaitQueued(item.waits(), call);
                peers.awaitDone(item.waits(), stream);
            }
            if (view != View.COMM_ONLY) {
                launches.get(i).forEach(launch -> launch.launch(call & 1, call, stream));
            }
            if (moves) {
                if (productFirst && !item.products().isEmpty()) {
                    events.firstEnded(call, stream);
                }
                sums.get(i).forEach(made -> made.by().launch(stream));
                pushes.get(i).forEach(push -> push.to().copyFrom(push.from(), stream));
                if (item.awaited()) {
                    peers.raise(rank, i, i / 2, i % 2, call, stream);
                }
            }
        }
        if (moves) {
            peers.awaitQueued(program.arriving(), call);
            peers.awaitDone(program.arriving(), stream);
        }
    }

    @Override
    public Timeline timeline(int call, View view, CallEvents events, long firstNs, long seenNs) {
        if (!rows.isWhole()) {
            return null;
        }
        boolean multiplies = view != View.COMM_ONLY;
        boolean moves = view != View.COMPUTE_ONLY;
        List<GatedProduct> launched =
                multiplies ? launches.stream().flatMap(List::stream).toList() : List.of();
        return tiles.of(
                launched,
                events,
                call,
                seenNs,
                (times, zeroNs) ->
                        moves ? tracks(times, zeroNs, events.elapsedNs(call)) : List.of());
    }

    /** Rows are pushed between when they are finished and the end of the call. */
    private List<Timeline.Track> tracks(List<TileTimes.Times> times, long zeroNs, long elapsedNs) {
        List<Timeline.Track> tracks = new ArrayList<>();
        List<Span> finished = new ArrayList<>();
        for (Made made : sums.stream().flatMap(List::stream).toList()) {
            finished.addAll(
                    DeviceTimeline.finished(
                            made.by(), shards, made.sum().row(), zeroNs, elapsedNs));
        }
        if (!finished.isEmpty()) {
            tracks.add(new Timeline.Track("finish", finished));
        }
        long doneNs = times.stream().mapToLong(one -> one.ends()[1]).max().orElse(0);
        doneNs = Math.max(doneNs, finished.stream().mapToLong(Span::endNs).max().orElse(0));
        long fromNs = Math.min(doneNs, elapsedNs);
        List<Span> copies = new ArrayList<>();
        for (Push push : pushes.stream().flatMap(List::stream).toList()) {
            DeviceMatrix from = push.from();
            long bytes = from.rows() * from.cols() * from.dtype().bytes();
            copies.add(
                    new Span(
                                    Kind.TRANSFER,
                                    rank,
                                    push.peer(),
                                    push.peer(),
                                    -1,
                                    0,
                                    Math.min(from.rows(), shards.rows(rank)),
                                    bytes,
                                    fromNs,
                                    elapsedNs)
                            .asEstimated());
        }
        if (!copies.isEmpty()) {
            tracks.add(new Timeline.Track("copies-out", copies));
        }
        return tracks;
    }

    @Override
    public String obstacleToCapture() {
        return "a call in which other ranks take part: expected peers that are host memory";
    }

    @Override
    public void capture(int call, GpuStream stream) {
        throw new IllegalStateException(obstacleToCapture());
    }

    @Override
    public List<Timeline.Track> tracks(long startNs) {
        return List.of();
    }

    @Override
    public List<FailureReport.Sent> sent(int call) {
        return List.of();
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
        return launches.stream()
                .flatMap(List::stream)
                .mapToInt(GatedProduct::blocks)
                .findFirst()
                .orElse(0);
    }

    @Override
    public int copies() {
        return pushes.stream().mapToInt(List::size).sum();
    }

    @Override
    public void close() {
        DeviceRun.closeAll(owned);
    }
}
