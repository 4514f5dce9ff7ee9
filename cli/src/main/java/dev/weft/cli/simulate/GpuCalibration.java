package dev.weft.cli.simulate;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.kernel.DeviceEvent;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.GpuModel;
import dev.weft.cuda.kernel.PinnedBuffer;
import dev.weft.cuda.kernel.TileShape;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.ffi.CudaMemory;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.sim.Machine;
import dev.weft.sim.TileEngine;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import dev.weft.tune.Quantiles;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * Measures what products and copies cost on a GPU, with the operator itself: the rate of a
 * multiprocessor by type, what a tile and a launch cost besides, how fast rows come from host
 * memory, what a copy and its flag cost besides its bytes, and what a narrow row of a rectangle
 * costs besides while a product runs. What is not measured is as on an H200. Takes a second or two.
 * One thread.
 */
final class GpuCalibration {

    private static final int ROUNDS = 25;

    /** Until the card's clock has risen; more, and it falls again at the power limit. */
    private static final int WARM_UP = 150;

    /** Calls until the code that queues them is compiled. */
    private static final int COMPILED = 4000;

    private static final long SHORT_K = 1024;
    private static final long LONG_K = 4096;
    private static final int TILES_PER_WORKER = 4;
    private static final long COPIED_ROWS = 8192;
    private static final long COPIED_COLS = 4096;
    private static final int PIECES = 64;
    private static final int NARROW_ROWS = 512;
    private static final long[] NARROW_BYTES = {2048, 4096, 6144};
    private static final long BEFORE_BYTES = 2L << 20;
    private static final long TINY = 64;

    /** Rows for which multiprocessors share tiles if they ever do. */
    private static final long LARGE = 16384;

    private final Gpu gpu;

    private GpuCalibration(Gpu gpu) {
        this.gpu = gpu;
    }

    /** The model of a GPU that nothing else uses meanwhile. */
    public static Machine measure(Gpu gpu) {
        gpu.bind();
        return new GpuCalibration(gpu).machine();
    }

    private Machine machine() {
        Machine assumed = GpuModel.assumed(gpu.multiprocessors(), false);
        double callUs =
                during(
                        DType.BF16,
                        TINY,
                        TINY,
                        TINY,
                        op -> {
                            for (int i = 0; i < COMPILED; i++) {
                                op.callInPlace(View.COMPUTE_ONLY);
                            }
                            return medianUs(op, View.COMPUTE_ONLY);
                        });
        Map<DType, Double> gflops = new EnumMap<>(DType.class);
        double tileUs = 0;
        TileShape shape = null;
        for (DType type : List.of(DType.FP16, DType.BF16)) {
            GatedKernel kernel =
                    GatedKernel.load(gpu, type, type, false, Shards.even(LARGE, 1), 0, 0);
            shape = kernel.shape();
            double shortUs = tilesUs(type, shape, SHORT_K);
            double longUs = tilesUs(type, shape, LONG_K);
            double perColumnUs = Math.max(1e-9, (longUs - shortUs) / (LONG_K - SHORT_K));
            double operations = 2.0 * shape.rows() * shape.width() * TILES_PER_WORKER;
            double units = (double) gpu.multiprocessors() / shape.workers();
            gflops.put(type, operations / perColumnUs / units / 1e3);
            double rest = shortUs - callUs - SHORT_K * perColumnUs;
            tileUs = Math.max(tileUs, rest / TILES_PER_WORKER);
        }
        double wholeUs = copyUs(COPIED_ROWS);
        double piecesUs = copyUs(COPIED_ROWS / PIECES);
        double transferUs = Math.max(0, (piecesUs - wholeUs) / (PIECES - 1));
        double bytes = (double) COPIED_ROWS * COPIED_COLS * DType.BF16.bytes();
        double gbps = bytes / Math.max(1e-3, wholeUs - transferUs) / 1e3;
        // A unit of the model is one multiprocessor: two that share a tile have half of it each.
        double perTile = (double) gpu.multiprocessors() / shape.workers();
        long unitRows = Math.max(1, Math.round(shape.rows() / perTile));
        TileEngine engine =
                new TileEngine(
                        gpu.multiprocessors(),
                        unitRows,
                        shape.width(),
                        gflops,
                        Math.max(0, tileUs));
        return new Machine(
                        "here",
                        GpuModel.describe(gpu),
                        List.of("weft calibrate --gpu; what it does not measure is from h200-pcie"),
                        engine,
                        assumed.memory(),
                        new Machine.Overheads(
                                callUs,
                                transferUs,
                                assumed.overheads().signalUs(),
                                assumed.overheads().wakeUs()),
                        assumed.consumption(),
                        assumed.ranksPerNode(),
                        assumed.node(),
                        assumed.network(),
                        copies(shape, assumed.copies()))
                .withLinksFaster(gbps / assumed.node().gbps());
    }

    /** Of a product in which every worker has a few tiles, and none more than another. */
    private double tilesUs(DType type, TileShape shape, long k) {
        return during(type, rows(shape), k, cols(shape), op -> medianUs(op, View.COMPUTE_ONLY));
    }

    private static long rows(TileShape shape) {
        return (long) shape.rows() * (shape.workers() / divisor(shape.workers()));
    }

    private static long cols(TileShape shape) {
        return (long) shape.width() * TILES_PER_WORKER * divisor(shape.workers());
    }

    /** What narrow rows cost while such a product runs: far more than if nothing else does. */
    private Machine.Copies copies(TileShape shape, Machine.Copies assumed) {
        long far = 2 * (long) assumed.farBytes();
        return during(
                DType.BF16,
                rows(shape),
                LONG_K,
                cols(shape),
                op ->
                        new Machine.Copies(
                                assumed.narrowBytes(),
                                rowNs(op, far / 4),
                                assumed.farBytes(),
                                rowNs(op, far)));
    }

    /** The cost of a row besides its bytes, in rectangles whose rows are so far apart. */
    private static double rowNs(CudaAllGatherMatmul op, long apart) {
        double sum = 0;
        try (GpuStream product = GpuStream.create();
                GpuStream copy = GpuStream.urgent();
                DeviceEvent begin = DeviceEvent.timed();
                DeviceEvent end = DeviceEvent.timed();
                PinnedBuffer from = PinnedBuffer.allocate(NARROW_ROWS * apart);
                DeviceBuffer to = DeviceBuffer.zeroed(NARROW_ROWS * apart, product)) {
            for (long width : NARROW_BYTES) {
                double[] ns = new double[ROUNDS];
                for (int round = 0; round < 2 * ROUNDS; round++) {
                    // The rectangle, and then the same number of bytes that lie together. The copy
                    // before it hides how long the host takes to queue it.
                    boolean flat = round % 2 == 1;
                    var call = op.start(op.nextShard(), product, View.COMPUTE_ONLY);
                    copy(to, from, BEFORE_BYTES, BEFORE_BYTES, 1, copy);
                    begin.record(copy);
                    copy(to, from, flat ? width : apart, width, NARROW_ROWS, copy);
                    end.record(copy);
                    call.await();
                    copy.synchronize();
                    ns[round / 2] += (flat ? -1 : 1) * end.nsSince(begin);
                }
                sum += Quantiles.median(ns) / NARROW_ROWS;
            }
        }
        return Math.max(0, sum / NARROW_BYTES.length);
    }

    /** The largest divisor up to 8: it makes A and B about as large. */
    private static int divisor(int workers) {
        int best = 1;
        for (int d = 2; d <= 8; d++) {
            best = workers % d == 0 ? d : best;
        }
        return best;
    }

    private static void copy(
            DeviceBuffer to, PinnedBuffer from, long pitch, long width, long rows, GpuStream on) {
        CudaMemory.copy2dAsync(
                to.address(), pitch, from.address(), pitch, width, rows, on.handle());
    }

    /** Makes the operator of a product and measures something with it. */
    private <T> T during(
            DType type, long m, long k, long n, Function<CudaAllGatherMatmul, T> measured) {
        long pitch = DeviceMatrix.alignedPitch(type, n);
        try (GpuStream stream = GpuStream.create();
                DeviceCheck check = new DeviceCheck(gpu);
                var memory = DeviceBuffer.zeroed(k * pitch * type.bytes(), stream)) {
            DeviceMatrix b = new DeviceMatrix(memory.address(), type, k, n, pitch);
            check.fillNormal(b, 1, 1);
            try (CudaAllGatherMatmul op =
                    CudaAllGatherMatmul.withHostPeers(gpu, 0)
                            .a(Shards.even(m, 1), type)
                            .b(b, false)
                            .output(type)
                            .algorithm(Algorithm.SEQUENTIAL)
                            .prepare()) {
                check.fillNormal(op.nextShard(), 2, 1);
                op.callInPlace(View.PIPELINED);
                return measured.apply(op);
            }
        }
    }

    /** Of rows from pinned host memory, in chunks of so many. */
    private double copyUs(long chunkRows) {
        try (GpuStream stream = GpuStream.create();
                var memory = DeviceBuffer.zeroed(COPIED_COLS * TINY * 2, stream)) {
            DeviceMatrix b =
                    new DeviceMatrix(memory.address(), DType.BF16, COPIED_COLS, TINY, TINY);
            try (CudaAllGatherMatmul op =
                    CudaAllGatherMatmul.withHostPeers(gpu, 0)
                            .a(Shards.of(1, COPIED_ROWS), DType.BF16)
                            .b(b, false)
                            .algorithm(Algorithm.MESH_PULL)
                            .chunkRows(chunkRows)
                            .prepare()) {
                return medianUs(op, View.COMM_ONLY);
            }
        }
    }

    private static double medianUs(CudaAllGatherMatmul op, View view) {
        double[] us = new double[ROUNDS];
        for (int round = -WARM_UP; round < ROUNDS; round++) {
            us[Math.max(0, round)] = op.callInPlace(view).elapsedNs() / 1e3;
        }
        return Quantiles.median(us);
    }
}
