package dev.weft.cuda.kernel;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.RowRange.Piece;
import dev.weft.ffi.CublasLt;
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

    private final List<RowRange> all;
    private final RowPlaces rowPlaces;
    private final boolean bTransposed;

    /** Those of the next launches. */
    private List<RowRange> ranges;

    private final List<List<DeviceMatrix>> places;
    private final DeviceMatrix b;
    private final DeviceMatrix c;
    private final Arrivals arrivals;
    private final Map<Long, CublasLt.Product> byRows = new HashMap<>();
    private final List<GpuStream> streams = new ArrayList<>();
    private final List<DeviceBuffer> workspaces = new ArrayList<>();
    private final DeviceEvent[] events = new DeviceEvent[STREAMS + 1];

    /** Lets a stream wait for the rows of a flag. */
    public interface Arrivals {
        void await(int flag, int call, GpuStream stream);
    }

    public CublasProduct(
            List<RowRange> ranges,
            List<List<DeviceMatrix>> places,
            DeviceMatrix b,
            boolean bTransposed,
            DeviceMatrix c,
            Arrivals arrivals,
            RowPlaces rowPlaces) {
        this.places = places;
        this.all = ranges;
        this.rowPlaces = rowPlaces;
        this.bTransposed = bTransposed;
        this.b = b;
        this.c = c;
        this.arrivals = arrivals;
        setRows(RowPlaces.Call.WHOLE, null);
        for (int i = 0; i < STREAMS; i++) {
            streams.add(GpuStream.create());
            workspaces.add(DeviceBuffer.allocate(WORKSPACE_BYTES));
        }
        Arrays.setAll(events, i -> new DeviceEvent());
        loadKernels();
    }

    /** The library chooses anew for numbers of rows that it has not had yet. */
    @Override
    public void setRows(RowPlaces.Call call, GpuStream stream) {
        List<RowRange> placed = all.stream().map(range -> rowPlaces.in(call, range)).toList();
        ranges = merged(placed, places.getFirst());
        long k = bTransposed ? b.cols() : b.rows();
        for (RowRange range : ranges) {
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
            arrivals.await(piece.flag(), epoch, streams.get(turn));
        }
        multiply(range, place, turn);
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
