package dev.weft.cuda.exec;

import dev.weft.cuda.CudaAllGatherMatmul;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.TileShape;
import dev.weft.op.Operator.View;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.sim.Machine;
import dev.weft.sim.TileEngine;
import dev.weft.tensor.DType;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * Measures what products and copies cost on a GPU, with the operator itself: the rate of a
 * multiprocessor by type, what a tile and a launch cost besides, how fast rows come from host
 * memory and what a copy and its flag cost besides its bytes. What is not measured is as on an
 * H200. Takes a second or two. One thread.
 */
public final class GpuCalibration {

    private static final int ROUNDS = 25;

    /** Until the code that queues calls is compiled, and the card's clock has risen. */
    private static final int WARM_UP = 150;

    private static final long SHORT_K = 1024;
    private static final long LONG_K = 4096;
    private static final int TILES_PER_WORKER = 4;
    private static final long COPIED_ROWS = 8192;
    private static final long COPIED_COLS = 4096;
    private static final int PIECES = 64;
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
        double callUs = productUs(DType.BF16, TINY, TINY, TINY);
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
                        assumed.copies())
                .withLinksFaster(gbps / assumed.node().gbps());
    }

    /** Of a product in which every worker has a few tiles, and none more than another. */
    private double tilesUs(DType type, TileShape shape, long k) {
        int down = divisor(shape.workers());
        long m = (long) shape.rows() * (shape.workers() / down);
        long n = (long) shape.width() * TILES_PER_WORKER * down;
        return productUs(type, m, k, n);
    }

    /** The largest divisor up to 8: it makes A and B about as large. */
    private static int divisor(int workers) {
        int best = 1;
        for (int d = 2; d <= 8; d++) {
            best = workers % d == 0 ? d : best;
        }
        return best;
    }

    private double productUs(DType type, long m, long k, long n) {
        long pitch = DeviceMatrix.alignedPitch(type, n);
        try (GpuStream stream = GpuStream.create();
                DeviceCheck check = new DeviceCheck(gpu);
                var memory = DeviceOperands.zeroed(k * pitch * type.bytes(), stream)) {
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
                return medianUs(op, View.COMPUTE_ONLY);
            }
        }
    }

    /** Of rows from pinned host memory, in chunks of so many. */
    private double copyUs(long chunkRows) {
        try (GpuStream stream = GpuStream.create();
                var memory = DeviceOperands.zeroed(COPIED_COLS * TINY * 2, stream)) {
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
        Arrays.sort(us);
        return us[ROUNDS / 2];
    }
}
