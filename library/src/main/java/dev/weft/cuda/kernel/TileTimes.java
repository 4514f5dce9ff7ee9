package dev.weft.cuda.kernel;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.GpuStream;
import dev.weft.ffi.CudaMemory;
import dev.weft.plan.Shards;
import dev.weft.trace.Timeline.Kind;
import dev.weft.trace.Timeline.Span;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * When each tile of a product was multiplied, and when its loads stood at a gate, by the device's
 * clock. The kernel writes these times in every call, the later one's over the earlier one's, and
 * the host reads them once a call has ended and a timeline is wanted. One thread at a time.
 */
public final class TileTimes implements AutoCloseable {

    /** Set to {@code false}, no times are kept on the device: to find out what they cost. */
    static final String PROPERTY = "weft.cuda.timeline";

    private static final int PERIOD_LONGS = 2;

    private final TileSchedule schedule;
    private final int workers;
    private final DeviceBuffer busy;
    private final DeviceBuffer waits;

    private TileTimes(TileSchedule schedule, int workers) {
        this.schedule = schedule;
        this.workers = workers;
        long tiles = Math.max(1, schedule.tileCount());
        try (GpuStream stream = GpuStream.create()) {
            long each = PERIOD_LONGS * JAVA_LONG.byteSize();
            this.busy = DeviceBuffer.zeroed(tiles * each, stream);
            long perTile = Math.max(1, schedule.gatesPerTile());
            this.waits = DeviceBuffer.zeroed(tiles * perTile * each, stream);
        }
    }

    /**
     * Null if no times are kept.
     *
     * @param workers that take tiles in turn
     */
    static TileTimes of(TileSchedule schedule, int workers) {
        return areKept() ? new TileTimes(schedule, workers) : null;
    }

    /** Whether times are kept on the device. */
    public static boolean areKept() {
        return !"false".equals(System.getProperty(PROPERTY));
    }

    long busyAddress() {
        return busy.address();
    }

    long waitsAddress() {
        return waits.address();
    }

    /** All times of the latest call, as far as they were written since {@code zeroNs}. */
    public Times read(long zeroNs) {
        return new Times(schedule, workers, longs(busy), longs(waits), zeroNs);
    }

    static long[] longs(DeviceBuffer buffer) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment copy = arena.allocate(buffer.bytes(), JAVA_LONG.byteAlignment());
            CudaMemory.copyToHost(copy, buffer.address());
            return copy.toArray(JAVA_LONG);
        }
    }

    /** The same span at another time. */
    public static Span at(Span span, long startNs, long endNs) {
        return new Span(
                span.kind(),
                span.source(),
                span.peer(),
                span.to(),
                span.chunk(),
                span.firstRow(),
                span.rows(),
                span.bytes(),
                startNs,
                endNs);
    }

    @Override
    public void close() {
        busy.close();
        waits.close();
    }

    /**
     * Whose rows tiles have.
     *
     * @param shards of the rows of C
     * @param summed whether a tile's rows are numbered as in C, not as in their shard
     * @param origins by flag: whose chunk it tells of
     * @param senders by flag: the rank that sends it
     */
    public record Owners(Shards shards, boolean summed, List<Origin> origins, int[] senders) {

        /** Whose row of C this is. */
        int of(long row) {
            int owner = 0;
            while (row >= shards.firstRow(owner) + shards.rows(owner)) {
                owner++;
            }
            return owner;
        }
    }

    /**
     * What was read. Pure.
     *
     * @param busy begin and end of each tile
     * @param waits begin and end by tile and number of the gate modulo {@link
     *     TileSchedule#gatesPerTile}
     * @param zeroNs the call's begin; what is older is of an earlier call
     */
    public record Times(
            TileSchedule schedule, int workers, long[] busy, long[] waits, long zeroNs) {

        /** When the first tile began and the last one ended, since the call's begin. */
        public long[] ends() {
            long first = Long.MAX_VALUE;
            long last = Long.MIN_VALUE;
            for (int tile = 0; tile < schedule.tileCount(); tile++) {
                first = Math.min(first, busy[2 * tile] - zeroNs);
                last = Math.max(last, busy[2 * tile + 1] - zeroNs);
            }
            return new long[] {first, last};
        }

        /** These times, of a call that began at another time. */
        public Times since(long newZeroNs) {
            return new Times(schedule, workers, busy, waits, newZeroNs);
        }

        /**
         * When a flag had come for which tiles waited: as soon as the first of them went on.
         *
         * @param arrivals by flag, since the call's begin; earlier times replace those there
         */
        public void addArrivals(long[] arrivals) {
            for (int tile = 0; tile < schedule.tileCount(); tile++) {
                for (int i = 0; i < schedule.gates(tile); i++) {
                    if (hasWaited(tile, i)) {
                        int flag = schedule.awaitedFlag(tile, i);
                        long at = wait(tile, i, 1) - zeroNs;
                        arrivals[flag] = arrivals[flag] < 0 ? at : Math.min(arrivals[flag], at);
                    }
                }
            }
        }

        private long wait(int tile, int gate, int end) {
            int perTile = schedule.gatesPerTile();
            int place = tile * perTile + (schedule.firstGate(tile) + gate) % perTile;
            return waits[PERIOD_LONGS * place + end];
        }

        private boolean hasWaited(int tile, int gate) {
            return wait(tile, gate, 0) >= zeroNs;
        }

        /**
         * Products and waits by worker, in the order of time. Loads run ahead of the products: of a
         * wait, only the part counts for which the worker had nothing else to multiply.
         *
         * @param to by worker; what is there already came earlier
         */
        public void addSpans(Owners owners, List<List<Span>> to) {
            for (int tile = 0; tile < schedule.tileCount(); tile++) {
                int worker = tile % workers;
                while (to.size() <= worker) {
                    to.add(new ArrayList<>());
                }
                List<Span> spans = to.get(worker);
                Span product = product(tile, owners);
                long at = busy[2 * tile];
                for (int i = 0; i < schedule.gates(tile); i++) {
                    long from = Math.max(at, wait(tile, i, 0));
                    long until = wait(tile, i, 1);
                    if (!hasWaited(tile, i) || until <= from) {
                        continue;
                    }
                    if (from > at) {
                        spans.add(at(product, at, from));
                    }
                    int flag = schedule.awaitedFlag(tile, i);
                    Origin origin = owners.origins().get(flag);
                    spans.add(
                            new Span(
                                    Kind.WAIT,
                                    origin.source(),
                                    owners.senders()[flag],
                                    -1,
                                    origin.chunk(),
                                    product.firstRow(),
                                    rowsOf(origin.source(), product.firstRow(), tile, owners),
                                    0,
                                    from - zeroNs,
                                    until - zeroNs));
                    at = until;
                }
                spans.add(at(product, at, Math.max(at, busy[2 * tile + 1])));
            }
        }

        /** Of a tile with rows of several shards, those of the one that comes last. */
        private Span product(int tile, Owners owners) {
            int gates = schedule.gates(tile);
            int source = schedule.source(tile);
            long firstRow = schedule.sourceRow(tile);
            if (owners.summed()) {
                source = owners.of(firstRow);
                firstRow -= owners.shards().firstRow(source);
            } else if (gates > 0) {
                source = owners.origins().get(schedule.awaitedFlag(tile, gates - 1)).source();
            }
            long rows = rowsOf(source, firstRow, tile, owners);
            return Span.local(Kind.COMPUTE, source, source, firstRow, rows, 0, 0);
        }

        /** How many rows of a tile a shard has, if they begin with {@code firstRow}. */
        private long rowsOf(int source, long firstRow, int tile, Owners owners) {
            long left = owners.shards().rows(source) - firstRow;
            return Math.max(0, Math.min(schedule.rows(tile), left));
        }

        private Span at(Span product, long fromNs, long untilNs) {
            return TileTimes.at(product, fromNs - zeroNs, untilNs - zeroNs);
        }

        /** By counter: when the last tile had ended that it counts, since the call's begin. */
        public void addSignals(long[] ends) {
            for (int tile = 0; tile < schedule.signals().length; tile++) {
                int signal = schedule.signals()[tile];
                if (signal >= 0) {
                    ends[signal] = Math.max(ends[signal], busy[2 * tile + 1] - zeroNs);
                }
            }
        }
    }
}
