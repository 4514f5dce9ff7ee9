package dev.weft.cuda.exec;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.ffi.CudaMemory;
import dev.weft.ffi.CudaModules;
import dev.weft.tensor.DType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * One product, ready to be launched: its schedule and its descriptions of A, B and C are on the
 * device. A may lie in one of several places, of which each launch names one. One thread at a time.
 */
public final class GatedProduct implements DeviceProduct {

    private static final long SCHEDULE_BYTES = 64;
    private static final long EPOCH_AT = 48;
    private static final long SOURCES_AT = 64;
    private static final int SOURCE_BYTES = 16;
    private static final int SLAB_COLS = 64;
    private static final int C_BOX_ROWS = 64;

    /** The width of every box: that of the swizzle. */
    private static final int BOX_BYTES = 128;

    private final GatedKernel kernel;
    private final Arena arena = Arena.ofShared();
    private final DeviceBuffer tiles;
    private final DeviceBuffer gates;
    private final DeviceBuffer sources;
    private final long placeBytes;
    private final MemorySegment arguments;
    private final MemorySegment pointers;

    /**
     * @param places for each place of A its sources, as many in each
     * @param flags address of the flags
     */
    public GatedProduct(
            GatedKernel kernel,
            TileSchedule schedule,
            List<List<DeviceMatrix>> places,
            DeviceMatrix b,
            boolean bTransposed,
            DeviceMatrix c,
            long flags,
            StallWord stall,
            long deadlineNs) {
        this.kernel = kernel;
        long k = bTransposed ? b.cols() : b.rows();
        long n = bTransposed ? b.rows() : b.cols();
        this.tiles = upload(schedule.tiles());
        this.gates = upload(schedule.gates());
        this.sources = describeSources(places);
        this.placeBytes = sources.bytes() / places.size();
        this.arguments = arena.allocate(512, 64);
        this.pointers = arena.allocate(8 * 8, 8);
        writeSchedule(schedule, k, flags, stall, deadlineNs);
        if (kernel.kind() == GatedKernel.Kind.HOPPER) {
            // (schedule, maps of A, map of B, map of C, C, its pitch, n, whether C's map serves)
            // B in slabs of 64 columns of C, whichever way it lies.
            encode(arguments.asSlice(128, CudaModules.TENSOR_MAP_BYTES), b, SLAB_COLS);
            boolean boxes = c.isAligned();
            if (boxes) {
                encode(arguments.asSlice(256, CudaModules.TENSOR_MAP_BYTES), c, C_BOX_ROWS);
            }
            arguments.set(JAVA_LONG, 384, c.address());
            arguments.set(JAVA_LONG, 392, c.rowPitch());
            arguments.set(JAVA_INT, 400, Math.toIntExact(n));
            arguments.set(JAVA_INT, 404, boxes ? 1 : 0);
            pointTo(0, SOURCES_AT, 128, 256, 384, 392, 400, 404);
        } else {
            // (schedule, sources of A, source of B, C, its pitch, n, k, types)
            arguments.set(JAVA_LONG, 72, b.address());
            arguments.set(JAVA_LONG, 80, b.pitchBytes());
            arguments.set(JAVA_LONG, 88, c.address());
            arguments.set(JAVA_LONG, 96, c.rowPitch());
            arguments.set(JAVA_INT, 104, Math.toIntExact(n));
            arguments.set(JAVA_INT, 108, Math.toIntExact(k));
            // The kernel of any types is told which, and how B lies.
            arguments.set(JAVA_INT, 112, places.getFirst().getFirst().dtype().ordinal());
            arguments.set(JAVA_INT, 116, b.dtype().ordinal());
            arguments.set(JAVA_INT, 120, c.dtype().ordinal());
            arguments.set(JAVA_INT, 124, bTransposed ? 1 : 0);
            pointTo(0, SOURCES_AT, 72, 88, 96, 104, 108, 112);
        }
    }

    private void pointTo(long... offsets) {
        for (int i = 0; i < offsets.length; i++) {
            pointers.setAtIndex(JAVA_LONG, i, arguments.address() + offsets[i]);
        }
    }

    private void writeSchedule(
            TileSchedule schedule, long k, long flags, StallWord stall, long deadlineNs) {
        MemorySegment at = arguments.asSlice(0, SCHEDULE_BYTES);
        at.set(JAVA_LONG, 0, tiles.address());
        at.set(JAVA_LONG, 8, gates.address());
        at.set(JAVA_LONG, 16, flags);
        at.set(JAVA_LONG, 24, stall.deviceAddress());
        at.set(JAVA_LONG, 32, stall.hostAddress());
        at.set(JAVA_LONG, 40, deadlineNs);
        at.set(JAVA_INT, 52, schedule.tileCount());
        at.set(JAVA_INT, 56, Math.toIntExact(Math.ceilDiv(k, TileShape.K_BLOCK)));
    }

    private static DeviceBuffer upload(int[] numbers) {
        DeviceBuffer buffer = DeviceBuffer.allocate(Math.max(1, numbers.length) * 4L);
        if (numbers.length > 0) {
            try (Arena staging = Arena.ofConfined()) {
                CudaMemory.copyToDevice(buffer.address(), staging.allocateFrom(JAVA_INT, numbers));
            }
        }
        return buffer;
    }

    /** Tensor maps or addresses, by place and source. */
    private DeviceBuffer describeSources(List<List<DeviceMatrix>> places) {
        boolean maps = kernel.kind() == GatedKernel.Kind.HOPPER;
        int each = maps ? CudaModules.TENSOR_MAP_BYTES : SOURCE_BYTES;
        int count = places.getFirst().size();
        DeviceBuffer buffer = DeviceBuffer.allocate((long) places.size() * count * each);
        try (Arena staging = Arena.ofConfined()) {
            MemorySegment all = staging.allocate(buffer.bytes(), 64);
            long at = 0;
            for (List<DeviceMatrix> place : places) {
                for (DeviceMatrix source : place) {
                    if (maps) {
                        encode(all.asSlice(at, each), source, kernel.kind().rows);
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
        CudaModules.encodeTensorMap(
                map,
                matrix.dtype() == DType.FP32 ? CudaModules.FLOAT32 : CudaModules.UINT16,
                matrix.address(),
                matrix.cols(),
                // An empty shard has no tiles, but its map must be a valid one.
                Math.max(1, matrix.rows()),
                matrix.pitchBytes(),
                BOX_BYTES / matrix.dtype().bytes(),
                boxRows);
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
        arguments.set(JAVA_INT, EPOCH_AT, epoch);
        arguments.set(JAVA_LONG, SOURCES_AT, sources.address() + place * placeBytes);
        CudaModules.launch(
                kernel.function(),
                kernel.blocks(),
                1,
                kernel.kind().threads,
                kernel.sharedBytes(),
                stream.handle(),
                pointers,
                kernel.cluster());
    }

    @Override
    public void close() {
        tiles.close();
        gates.close();
        sources.close();
        arena.close();
    }
}
