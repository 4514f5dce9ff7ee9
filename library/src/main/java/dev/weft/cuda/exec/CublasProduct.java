package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.RowRange.Piece;
import dev.weft.ffi.CublasLt;
import dev.weft.op.Timeline;
import dev.weft.op.Timeline.Kind;
import dev.weft.op.Timeline.Span;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The product by cublasLt: one call per group of rows, on two streams in turn, each of which waits
 * for the rows. The call's copies must have begun before it is launched. The library chooses
 * kernels by the number of rows, so it promises the float64 bound and no bits. One thread at a
 * time.
 */
public final class CublasProduct implements DeviceProduct {

    private static final long WORKSPACE_BYTES = 32L << 20;
    private static final int STREAMS = 2;

    private final List<RowRange> ranges;

    /** By range: the given ones that it was made of. */
    private final List<List<RowRange>> parts = new ArrayList<>();

    private final List<List<DeviceMatrix>> places;
    private final DeviceMatrix b;
    private final DeviceMatrix c;
    private final Copies copies;
    private final Map<Long, CublasLt.Product> byRows = new HashMap<>();
    private final List<GpuStream> streams = new ArrayList<>();
    private final List<DeviceBuffer> workspaces = new ArrayList<>();
    private final DeviceEvent[] events = new DeviceEvent[STREAMS + 1];

    public CublasProduct(
            List<RowRange> ranges,
            List<List<DeviceMatrix>> places,
            DeviceMatrix b,
            boolean bTransposed,
            DeviceMatrix c,
            Copies copies) {
        this.places = places;
        this.ranges = merged(ranges, places.getFirst());
        this.b = b;
        this.c = c;
        this.copies = copies;
        long k = bTransposed ? b.cols() : b.rows();
        for (RowRange range : this.ranges) {
            long end = range.row() + range.rows();
            parts.add(
                    ranges.stream()
                            .filter(part -> part.rows() > 0)
                            .filter(part -> part.row() >= range.row() && part.row() < end)
                            .toList());
            byRows.computeIfAbsent(
                    range.rows(),
                    rows ->
                            CublasLt.prepare(
                                    b.dtype() == DType.BF16,
                                    c.dtype() == DType.FP32,
                                    rows,
                                    c.cols(),
                                    k,
                                    places.getFirst().get(range.source()).rowPitch(),
                                    bTransposed,
                                    b.rowPitch(),
                                    c.rowPitch(),
                                    WORKSPACE_BYTES,
                                    1));
        }
        for (int i = 0; i < STREAMS; i++) {
            streams.add(GpuStream.create());
            workspaces.add(DeviceBuffer.allocate(WORKSPACE_BYTES));
        }
        Arrays.setAll(events, i -> new DeviceEvent());
        loadKernels();
    }

    /**
     * One run of everything: the library loads a kernel when it is first used, and loading waits
     * for what the device is at.
     */
    private void loadKernels() {
        for (RowRange range : ranges) {
            multiply(range, 0, 0);
        }
        streams.getFirst().synchronize();
    }

    /** Rows that wait for nothing and lie behind each other become one product. */
    public static List<RowRange> merged(List<RowRange> ranges, List<DeviceMatrix> sources) {
        List<RowRange> result = new ArrayList<>();
        for (RowRange next : ranges) {
            RowRange before = result.isEmpty() ? null : result.getLast();
            if (before != null
                    && before.pieces().isEmpty()
                    && next.pieces().isEmpty()
                    && before.row() + before.rows() == next.row()
                    && end(before, sources) == start(next, sources)) {
                result.set(
                        result.size() - 1,
                        new RowRange(
                                before.source(),
                                before.sourceRow(),
                                before.row(),
                                before.rows() + next.rows(),
                                List.of(),
                                false));
            } else if (next.rows() > 0) {
                result.add(next);
            }
        }
        return List.copyOf(result);
    }

    private static long start(RowRange range, List<DeviceMatrix> sources) {
        return sources.get(range.source()).at(range.sourceRow(), 0);
    }

    private static long end(RowRange range, List<DeviceMatrix> sources) {
        return sources.get(range.source()).at(range.sourceRow() + range.rows(), 0);
    }

    /** The library chooses. */
    @Override
    public int blocks() {
        return 0;
    }

    @Override
    public void launch(int place, int epoch, GpuStream stream) {
        int used = Math.min(STREAMS, ranges.size());
        events[STREAMS].record(stream);
        for (int i = 0; i < used; i++) {
            events[STREAMS].join(streams.get(i));
        }
        for (int i = 0; i < ranges.size(); i++) {
            run(i, place, epoch, i % STREAMS);
        }
        for (int i = 0; i < used; i++) {
            events[i].record(streams.get(i));
            events[i].join(stream);
        }
    }

    private void run(int index, int place, int epoch, int turn) {
        RowRange range = ranges.get(index);
        for (Piece piece : range.pieces()) {
            copies.awaitArrival(piece.flag(), epoch, streams.get(turn));
        }
        multiply(range, place, turn);
    }

    /**
     * The products of a stream follow each other, each waits for its rows, and the last one of all
     * ends with the call; that they multiply rows at one rate is an assumption. Events around them
     * would cost 5% of a short call (H200). A product has a span for each shard. Nothing is known
     * of several Bs, nor without arrivals.
     */
    @Override
    public boolean addSpans(
            DeviceTimeline.Others arrivals, long endNs, List<List<Timeline.Span>> to) {
        if (ranges.isEmpty() || !to.isEmpty()) {
            return false;
        }
        List<long[]> ready = new ArrayList<>();
        List<long[]> rows = new ArrayList<>();
        for (int turn = 0; turn < Math.min(STREAMS, ranges.size()); turn++) {
            int count = Math.ceilDiv(ranges.size() - turn, STREAMS);
            ready.add(new long[count]);
            rows.add(new long[count]);
            for (int i = 0; i < count; i++) {
                RowRange range = ranges.get(i * STREAMS + turn);
                rows.getLast()[i] = range.rows();
                for (Piece piece : range.pieces()) {
                    long ns = arrivals.arrivalNs(piece.flag());
                    if (ns < 0) {
                        return false;
                    }
                    ready.getLast()[i] = Math.max(ready.getLast()[i], Math.min(ns, endNs));
                }
            }
        }
        List<long[]> ends = SteadyRate.ends(arrivals.firstNs(), ready, rows, endNs);
        for (int turn = 0; turn < ends.size(); turn++) {
            to.add(new ArrayList<>());
            long at = arrivals.firstNs();
            for (int i = 0; i < ends.get(turn).length; i++) {
                long from = Math.max(at, ready.get(turn)[i]);
                at = ends.get(turn)[i];
                for (RowRange part : parts.get(i * STREAMS + turn)) {
                    int source = part.source();
                    long first = part.sourceRow();
                    to.getLast()
                            .add(
                                    Span.local(
                                            Kind.COMPUTE,
                                            source,
                                            source,
                                            first,
                                            part.rows(),
                                            from,
                                            at));
                }
            }
        }
        return true;
    }

    private void multiply(RowRange range, int place, int turn) {
        byRows.get(range.rows())
                .run(
                        0,
                        start(range, places.get(place)),
                        b.address(),
                        c.at(range.row(), 0),
                        workspaces.get(turn).address(),
                        streams.get(turn).handle());
    }

    @Override
    public void close() {
        byRows.values().forEach(CublasLt.Product::close);
        streams.forEach(GpuStream::close);
        workspaces.forEach(DeviceBuffer::close);
        Arrays.stream(events).forEach(DeviceEvent::close);
    }
}
