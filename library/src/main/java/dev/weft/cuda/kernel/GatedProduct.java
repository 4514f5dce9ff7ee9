package dev.weft.cuda.kernel;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.ffi.CudaMemory;
import dev.weft.ffi.CudaModules;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;

/**
 * One product, ready to be launched: its schedule and its descriptions of A, B and C are on the
 * device. A may lie in one of several places, of which each launch names one. One thread at a time.
 */
public final class GatedProduct implements DeviceProduct {

    private static final long SCHEDULE_BYTES = 128;
    private static final long EPOCH_AT = 48;
    private static final long TILE_COUNT_AT = 52;
    private static final long CALLS_AHEAD_AT = 120;
    private static final long ROW_LIMIT_AT = 124;
    private static final long SOURCES_AT = 448;
    private static final long SUMS_AT = 512;
    private static final long PARTS_AT = SUMS_AT + CudaModules.TENSOR_MAP_BYTES;
    private static final int SOURCE_BYTES = 16;
    private static final int SLAB_COLS = 64;
    private static final int SCALED_SLAB_COLS = 128;
    private static final int SCALED_K_BLOCK = 128;
    private static final long ROWS_AT = SUMS_AT;
    private static final long SCALES_AT = SUMS_AT + 8;
    private static final int C_BOX_ROWS = 64;

    /** The width of every box: that of the swizzle. */
    private static final int BOX_BYTES = 128;

    private final GatedKernel kernel;
    private final Arena arena = Arena.ofShared();
    private final TileSchedule schedule;
    private final RowPlaces rowPlaces;

    /** Whether the list of tiles is the same for any rows, which only the last ones of C lack. */
    private final boolean keepsTiles;

    /** Tiles, and behind room for all of them their signals; likewise, twice, on the host. */
    private final DeviceBuffer tiles;

    private final PinnedBuffer written;
    private final int[] tilesOfCall;
    private final int[] signalsOfCall;
    private int turn;
    private int tileCount;
    private final DeviceBuffer gates;
    private final DeviceBuffer sources;
    private final DeviceBuffer bs;
    private final DeviceBuffer parts;
    private final DeviceBuffer rows;
    private final long placeBytes;

    /** Thread blocks of a launch: no more than there are tiles. */
    private final int launchedBlocks;

    /** Null if no times are kept. */
    private final TileTimes times;

    private final MemorySegment arguments;
    private final MemorySegment pointers;

    /**
     * Further arguments of a kernel that continues sums.
     *
     * @param start fp32 sums that tiles start from, [M, N]; null for zero
     * @param counters address of the counters that the schedule's signals number; 0 for none
     * @param bs B by part of K, if there are several; the matching As are the sources of a place
     */
    public record Sums(DeviceMatrix start, long counters, List<DeviceMatrix> bs) {

        /** Of one part of K. */
        public Sums(DeviceMatrix start, long counters) {
            this(start, counters, List.of());
        }
    }

    /**
     * Further arguments of a kernel whose operands have scales.
     *
     * @param ofB address of B's scales: by column, or by block of K and then of columns
     * @param byBlock whether there is one for each 128 columns of A
     * @param valuesAt bytes of a row of A before its elements
     */
    public record Scales(long ofB, boolean byBlock, long valuesAt) {}

    /**
     * What is multiplied: A, B and where their product goes.
     *
     * @param places for each place of A its sources; every place has the same number
     * @param transposed whether B is [N, K]
     * @param rowPlaces which rows move if a call has fewer
     */
    public record Operands(
            List<List<DeviceMatrix>> places,
            DeviceMatrix b,
            boolean transposed,
            DeviceMatrix c,
            RowPlaces rowPlaces) {

        /** Of all rows in every call. */
        public Operands(
                List<List<DeviceMatrix>> places,
                DeviceMatrix b,
                boolean transposed,
                DeviceMatrix c) {
            this(places, b, transposed, c, RowPlaces.OF_TARGET);
        }

        private long k() {
            return transposed ? b.cols() : b.rows();
        }

        private long n() {
            return transposed ? b.rows() : b.cols();
        }
    }

    /**
     * What tiles wait at.
     *
     * @param flags their address
     * @param deadlineNs the longest wait for one of them
     */
    public record Gates(long flags, StallWord stall, long deadlineNs) {}

    public GatedProduct(GatedKernel kernel, TileSchedule schedule, Operands operands, Gates gates) {
        this(kernel, schedule, operands, gates, null, null);
    }

    /** One of a kernel of operands with scales; B is [N, K]. */
    public GatedProduct(
            GatedKernel kernel,
            TileSchedule schedule,
            Operands operands,
            Gates gates,
            Scales scales) {
        this(kernel, schedule, operands, gates, null, scales);
    }

    /** One of a kernel of sums. */
    public GatedProduct(
            GatedKernel kernel, TileSchedule schedule, Operands operands, Gates gates, Sums sums) {
        this(kernel, schedule, operands, gates, sums, null);
    }

    private GatedProduct(
            GatedKernel kernel,
            TileSchedule schedule,
            Operands operands,
            Gates gates,
            Sums sums,
            Scales scales) {
        this.kernel = kernel;
        List<List<DeviceMatrix>> places = operands.places();
        this.schedule = schedule;
        this.rowPlaces = operands.rowPlaces();
        this.keepsTiles = schedule.isOneRowOfTiles() && rowPlaces.targetFirst() == 0;
        this.tilesOfCall = new int[schedule.tiles().length];
        this.signalsOfCall = new int[schedule.signals().length];
        long listBytes = 4L * Math.max(1, schedule.tiles().length + schedule.signals().length);
        this.tiles = DeviceBuffer.allocate(listBytes);
        this.written = PinnedBuffer.allocate(2 * listBytes);
        this.gates = upload(schedule.gates());
        this.sources =
                describe(scales == null ? places : values(places, operands.k(), scales), maps());
        this.rows = scales == null ? null : describe(places, false);
        this.placeBytes = sources.bytes() / places.size();
        int workers = Math.clamp(schedule.tileCount(), 1, kernel.blocks() / kernel.cluster());
        this.launchedBlocks = workers * kernel.cluster();
        this.times = TileTimes.of(schedule, kernel.blocks() / kernel.cluster());
        this.arguments = arena.allocate(PARTS_AT + 16, 64);
        this.pointers = arena.allocate(11 * 8, 8);
        writeSchedule(schedule, operands.k(), gates);
        List<DeviceMatrix> ofParts = sums == null ? List.of() : sums.bs();
        this.bs = ofParts.isEmpty() ? null : describe(List.of(ofParts), maps(), SLAB_COLS);
        this.parts = ofParts.isEmpty() ? null : upload(parts(ofParts, operands.transposed()));
        if (sums != null) {
            writeSums(sums, schedule, operands.transposed());
        }
        if (maps()) {
            writeMaps(operands, scales);
        } else {
            writeAddresses(operands, sums != null);
        }
        try (GpuStream stream = GpuStream.create()) {
            writeTiles(RowPlaces.Call.WHOLE, stream);
            stream.synchronize();
        }
    }

    private long signalsAt() {
        return 4L * schedule.tiles().length;
    }

    @Override
    public void setRows(RowPlaces.Call call, GpuStream stream) {
        if (!keepsTiles) {
            writeTiles(call, stream);
            return;
        }
        int rows = (int) rowPlaces.rows(call, 0, 0, schedule.rows(0));
        tileCount = rows > 0 ? schedule.tileCount() : 0;
        arguments.set(JAVA_INT, TILE_COUNT_AT, tileCount);
        arguments.set(JAVA_INT, ROW_LIMIT_AT, rows);
    }

    /** The list of calls under way stays as it is on the host: the two halves are used in turn. */
    private void writeTiles(RowPlaces.Call call, GpuStream stream) {
        turn ^= 1;
        tileCount = schedule.write(rowPlaces, call, tilesOfCall, signalsOfCall);
        arguments.set(JAVA_INT, TILE_COUNT_AT, tileCount);
        if (tileCount == 0) {
            return;
        }
        int ints = tileCount * TileSchedule.TILE_INTS;
        int signals = Math.min(tileCount, signalsOfCall.length);
        long at = turn * tiles.bytes();
        MemorySegment list = written.segment();
        MemorySegment.copy(tilesOfCall, 0, list, JAVA_INT, at, ints);
        MemorySegment.copy(signalsOfCall, 0, list, JAVA_INT, at + signalsAt(), signals);
        long bytes = signals > 0 ? signalsAt() + 4L * signals : 4L * ints;
        CudaMemory.copyAsync(tiles.address(), list.address() + at, bytes, stream.handle());
    }

    /** Adds to each counter what the tiles of a launch add to it. */
    public void addSignals(int[] counters) {
        for (int tile = 0; tile < Math.min(tileCount, signalsOfCall.length); tile++) {
            if (signalsOfCall[tile] >= 0) {
                counters[signalsOfCall[tile]] += kernel.signalsPerTile();
            }
        }
    }

    /** Schedule, maps of A, map of B, map of C, C, its pitch, n, and whether C's map serves. */
    private void writeMaps(Operands operands, Scales scales) {
        writeMapOfB(operands, scales);
        DeviceMatrix c = operands.c();
        if (c.isAligned()) {
            encode(arguments.asSlice(256, CudaModules.TENSOR_MAP_BYTES), c, C_BOX_ROWS);
        }
        arguments.set(JAVA_LONG, 384, c.address());
        arguments.set(JAVA_LONG, 392, c.rowPitch());
        arguments.set(JAVA_INT, 400, Math.toIntExact(operands.n()));
        arguments.set(JAVA_INT, 404, c.isAligned() ? 1 : 0);
        if (scales == null) {
            long parts = PARTS_AT;
            pointTo(0, SOURCES_AT, 128, 256, 384, 392, 400, 404, SUMS_AT, parts, parts + 8);
        } else {
            // Also rows of A with their scales, and scales.
            writeScales(scales, operands.k(), operands.n());
            pointTo(0, SOURCES_AT, 128, 256, 384, 392, 400, 404, ROWS_AT, SCALES_AT);
        }
    }

    /** B in slabs of some columns of C, whichever way it lies. */
    private void writeMapOfB(Operands operands, Scales scales) {
        MemorySegment map = arguments.asSlice(128, CudaModules.TENSOR_MAP_BYTES);
        if (kernel.family().blocks != null) {
            // No map: what PackedBlocks packed.
            arguments.set(JAVA_LONG, 128, operands.b().address());
        } else if (kernel.family() == KernelFamily.FEW_ROWS) {
            int cols = kernel.tiling().width();
            boolean transposed = operands.transposed();
            int boxCols = transposed ? TileShape.K_BLOCK : cols;
            int boxRows = transposed ? cols : TileShape.K_BLOCK;
            // B is read once. With the larger pieces that suit reuse, 4096 x 14336 took 34.4 us
            // instead of 31.6 (H200).
            encode(map, operands.b(), boxCols, boxRows, CudaModules.L2_NONE);
        } else {
            encode(map, operands.b(), scales == null ? SLAB_COLS : SCALED_SLAB_COLS);
        }
    }

    /** Schedule, sources of A, source of B, C, its pitch, n, k, and types or places of sums. */
    private void writeAddresses(Operands operands, boolean sums) {
        DeviceMatrix b = operands.b();
        DeviceMatrix c = operands.c();
        arguments.set(JAVA_LONG, 128, b.address());
        arguments.set(JAVA_LONG, 136, b.pitchBytes());
        arguments.set(JAVA_LONG, 144, c.address());
        arguments.set(JAVA_LONG, 152, c.rowPitch());
        arguments.set(JAVA_INT, 160, Math.toIntExact(operands.n()));
        arguments.set(JAVA_INT, 164, Math.toIntExact(operands.k()));
        // The kernel for any types needs these types and the layout of B; one of sums needs their
        // place.
        arguments.set(JAVA_INT, 168, operands.places().getFirst().getFirst().dtype().ordinal());
        arguments.set(JAVA_INT, 172, b.dtype().ordinal());
        arguments.set(JAVA_INT, 176, c.dtype().ordinal());
        arguments.set(JAVA_INT, 180, operands.transposed() ? 1 : 0);
        long last = sums ? SUMS_AT : 168;
        pointTo(0, SOURCES_AT, 128, 144, 152, 160, 164, last, PARTS_AT, PARTS_AT + 8);
    }

    /** Whether the kernel reads A and B by tensor maps. */
    private boolean maps() {
        return kernel.family().readsMaps();
    }

    private void writeScales(Scales scales, long k, long n) {
        MemorySegment at = arguments.asSlice(SCALES_AT, 24);
        at.set(JAVA_LONG, 0, scales.ofB());
        at.set(JAVA_INT, 8, Math.toIntExact(Math.ceilDiv(n, SCALED_SLAB_COLS)));
        at.set(JAVA_INT, 12, scales.byBlock() ? 1 : 0);
        at.set(JAVA_INT, 16, Math.toIntExact(scales.valuesAt()));
        at.set(JAVA_INT, 20, Math.toIntExact(Math.ceilDiv(k, SCALED_K_BLOCK)));
    }

    /** The elements of rows that have scales in front. */
    private static List<List<DeviceMatrix>> values(
            List<List<DeviceMatrix>> places, long k, Scales scales) {
        return places.stream()
                .map(
                        place ->
                                place.stream()
                                        .map(
                                                rows ->
                                                        new DeviceMatrix(
                                                                rows.address() + scales.valuesAt(),
                                                                rows.dtype(),
                                                                rows.rows(),
                                                                k,
                                                                rows.rowPitch()))
                                        .toList())
                .toList();
    }

    private void pointTo(long... offsets) {
        for (int i = 0; i < offsets.length; i++) {
            pointers.setAtIndex(JAVA_LONG, i, arguments.address() + offsets[i]);
        }
    }

    private void writeSchedule(TileSchedule schedule, long k, Gates waits) {
        MemorySegment at = arguments.asSlice(0, SCHEDULE_BYTES);
        at.set(JAVA_LONG, 0, tiles.address());
        at.set(JAVA_LONG, 8, gates.address());
        at.set(JAVA_LONG, 16, waits.flags());
        at.set(JAVA_LONG, 24, waits.stall().deviceAddress());
        at.set(JAVA_LONG, 32, waits.stall().hostAddress());
        at.set(JAVA_LONG, 40, waits.deadlineNs());
        at.set(JAVA_INT, 56, Math.toIntExact(Math.ceilDiv(k, TileShape.K_BLOCK)));
        at.set(JAVA_INT, CALLS_AHEAD_AT, 1);
        at.set(JAVA_INT, ROW_LIMIT_AT, Integer.MAX_VALUE);
        if (times != null) {
            at.set(JAVA_LONG, 80, times.busyAddress());
            at.set(JAVA_LONG, 88, times.waitsAddress());
            at.set(JAVA_INT, 112, schedule.gatesPerTile());
        }
    }

    /** For words that others write, however far ahead: none of them is taken for corrupt. */
    public void takeAnyWord() {
        arguments.set(JAVA_INT, CALLS_AHEAD_AT, Integer.MAX_VALUE);
    }

    @Override
    public Optional<TileTimes> times() {
        return Optional.ofNullable(times);
    }

    @Override
    public void watch(ArrivalTimes arrivals) {
        if (times != null) {
            arguments.set(JAVA_LONG, 96, arrivals.listAddress());
            arguments.set(JAVA_LONG, 104, arrivals.timesAddress());
            arguments.set(JAVA_INT, 116, arrivals.count());
        }
    }

    private void writeSums(Sums sums, TileSchedule schedule, boolean transposed) {
        DeviceMatrix start = sums.start();
        boolean signalled = schedule.signals().length > 0;
        arguments.set(JAVA_INT, 60, start == null ? 0 : 1);
        arguments.set(JAVA_LONG, 64, signalled ? tiles.address() + signalsAt() : 0);
        arguments.set(JAVA_LONG, 72, sums.counters());
        if (parts != null) {
            int[] all = parts(sums.bs(), transposed);
            arguments.set(JAVA_INT, 56, all[all.length - 2]);
            arguments.set(JAVA_LONG, PARTS_AT, bs.address());
            arguments.set(JAVA_LONG, PARTS_AT + 8, parts.address());
        }
        if (start != null && kernel.family() == KernelFamily.HOPPER) {
            MemorySegment map = arguments.asSlice(SUMS_AT, CudaModules.TENSOR_MAP_BYTES);
            encode(map, start, C_BOX_ROWS);
        } else if (start != null) {
            arguments.set(JAVA_LONG, SUMS_AT, start.address());
            arguments.set(JAVA_LONG, SUMS_AT + 8, start.pitchBytes());
        }
    }

    /** The kernels' struct Part of each part of K. */
    private static int[] parts(List<DeviceMatrix> bs, boolean bTransposed) {
        int[] numbers = new int[2 * bs.size()];
        int end = 0;
        for (int i = 0; i < bs.size(); i++) {
            long k = bTransposed ? bs.get(i).cols() : bs.get(i).rows();
            end += Math.toIntExact(Math.ceilDiv(k, TileShape.K_BLOCK));
            numbers[2 * i] = end;
            numbers[2 * i + 1] = Math.toIntExact(k);
        }
        return numbers;
    }

    static DeviceBuffer upload(int[] numbers) {
        DeviceBuffer buffer = DeviceBuffer.allocate(Math.max(1, numbers.length) * 4L);
        if (numbers.length > 0) {
            try (Arena staging = Arena.ofConfined()) {
                CudaMemory.copyToDevice(buffer.address(), staging.allocateFrom(JAVA_INT, numbers));
            }
        }
        return buffer;
    }

    private DeviceBuffer describe(List<List<DeviceMatrix>> places, boolean maps) {
        return describe(places, maps, kernel.blockRows());
    }

    /** Tensor maps with boxes of {@code boxRows} rows, or addresses, by place and source. */
    private static DeviceBuffer describe(
            List<List<DeviceMatrix>> places, boolean maps, int boxRows) {
        int each = maps ? CudaModules.TENSOR_MAP_BYTES : SOURCE_BYTES;
        int count = places.getFirst().size();
        DeviceBuffer buffer = DeviceBuffer.allocate((long) places.size() * count * each);
        try (Arena staging = Arena.ofConfined()) {
            MemorySegment all = staging.allocate(buffer.bytes(), 64);
            long at = 0;
            for (List<DeviceMatrix> place : places) {
                for (DeviceMatrix source : place) {
                    if (maps) {
                        encode(all.asSlice(at, each), source, boxRows);
                    } else {
                        all.set(JAVA_LONG, at, source.address());
                        all.set(JAVA_LONG, at + 8, source.pitchBytes());
                    }
                    at += each;
                }
            }
            CudaMemory.copyToDevice(buffer.address(), all);
        }
        return buffer;
    }

    /** A map of boxes of {@code boxRows} rows and 128 bytes, swizzled. */
    private static void encode(MemorySegment map, DeviceMatrix matrix, int boxRows) {
        int boxCols = BOX_BYTES / matrix.dtype().bytes();
        encode(map, matrix, boxCols, boxRows, CudaModules.L2_256B);
    }

    private static void encode(
            MemorySegment map, DeviceMatrix matrix, int boxCols, int boxRows, int promotion) {
        CudaModules.encodeTensorMap(
                map,
                switch (matrix.dtype()) {
                    case FP32 -> CudaModules.FLOAT32;
                    case FP16, BF16 -> CudaModules.UINT16;
                    case E4M3, E5M2 -> CudaModules.UINT8;
                },
                matrix.address(),
                matrix.cols(),
                // An empty shard has no tiles, but its map must be a valid one.
                Math.max(1, matrix.rows()),
                matrix.pitchBytes(),
                boxCols,
                boxRows,
                promotion);
    }

    @Override
    public int blocks() {
        return kernel.blocks();
    }

    /**
     * Queues the product of what lies at {@code place}, gated by flags that reach {@code epoch}.
     */
    @Override
    public void launch(int place, int epoch, GpuStream stream) {
        if (tileCount == 0 && schedule.tileCount() > 0) {
            return;
        }
        arguments.set(JAVA_INT, EPOCH_AT, epoch);
        arguments.set(JAVA_LONG, SOURCES_AT, sources.address() + place * placeBytes);
        if (rows != null) {
            long bytes = placeBytes / CudaModules.TENSOR_MAP_BYTES * SOURCE_BYTES;
            arguments.set(JAVA_LONG, ROWS_AT, rows.address() + place * bytes);
        }
        CudaModules.launch(
                kernel.function(),
                launchedBlocks,
                1,
                kernel.threads(),
                kernel.sharedBytes(),
                stream.handle(),
                pointers,
                kernel.cluster());
    }

    @Override
    public void close() {
        if (times != null) {
            times.close();
        }
        tiles.close();
        written.close();
        gates.close();
        sources.close();
        if (rows != null) {
            rows.close();
        }
        if (parts != null) {
            bs.close();
            parts.close();
        }
        arena.close();
    }
}
