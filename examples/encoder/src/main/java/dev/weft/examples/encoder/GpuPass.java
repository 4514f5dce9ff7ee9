package dev.weft.examples.encoder;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.fabric.Fabric;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * One rank's passes on a GPU, which ranks may share. A pass is queued as a whole. A rank that is
 * alone has no peers to wait for, and launches a pass of few rows as a CUDA graph. Used by one
 * thread at a time.
 */
final class GpuPass implements EncoderPass {

    /** Of compute capability 8.0: before, tensor cores do not multiply bf16. */
    private static final int LEAST_CAPABILITY = 80;

    private static final int OPERATORS_OF_LAYER = 4;

    /** With more, the GPU is busy for longer than launches take. */
    private static final int MOST_ROWS_OF_GRAPHS = 1024;

    private static final int LEAST_ROWS_OF_GRAPHS = 16;

    /** For so many rows, a graph has a tile: shorter sentences take a graph for more rows. */
    private static final int GRAPH_ROWS_OF_TILE = 4;

    private final Fabric fabric;
    private final Gpu gpu;
    private final int mostRows;
    private final GpuMemory memory;
    private final GpuWeights weights;
    private final GpuKernels kernels;

    /** Tiles as they are uploaded: numbers of 32 bits, not fp32. */
    private final Matrix hostTiles;

    private final DeviceMatrix tiles;
    private final DeviceMatrix means;
    private final Matrix hostMeans;

    /** By rows. */
    private final Map<Integer, GpuLayers> graphs = new HashMap<>();

    /** For calls of any rows; null before the first one. */
    private GpuLayers layers;

    private long calls;

    /** Collective. */
    GpuPass(Fabric fabric, Weights weights, int mostRows, Gpu gpu) {
        if (gpu.capability() < LEAST_CAPABILITY) {
            throw new IllegalStateException(
                    "%s: expected compute capability 8.0 or later".formatted(gpu));
        }
        this.fabric = fabric;
        this.gpu = gpu;
        this.mostRows = mostRows;
        gpu.bind();
        memory = new GpuMemory();
        try {
            kernels = new GpuKernels(gpu, memory.stream());
            this.weights = new GpuWeights(fabric, weights, gpu, memory);
            // There are at most as many tiles and sentences as rows.
            int most = Math.max(mostRows, MOST_ROWS_OF_GRAPHS);
            Arena arena = Arena.ofAuto();
            hostTiles = Matrix.allocate(arena, DType.FP32, most, GpuTiles.WORDS);
            hostMeans = Matrix.allocate(arena, DType.FP32, most, Weights.WIDTH);
            tiles = memory.zeroed(DType.FP32, most, GpuTiles.WORDS);
            means = memory.zeroed(DType.FP32, most, Weights.WIDTH);
        } catch (Throwable e) {
            try {
                memory.close();
            } catch (RuntimeException also) {
                e.addSuppressed(also);
            }
            throw e;
        }
    }

    @Override
    public void encode(List<int[]> sentences, List<float[]> to) {
        gpu.bind();
        GpuTiles batch = GpuTiles.of(sentences, weights.words().rows());
        int rows = rowsOfGraph(batch);
        if (fabric.size() == 1 && rows <= MOST_ROWS_OF_GRAPHS) {
            GpuLayers graph = graphs.computeIfAbsent(rows, this::prepared);
            graph.launch(uploaded(batch, rows / GRAPH_ROWS_OF_TILE));
        } else {
            layers = layers == null ? prepared(mostRows) : layers;
            layers.run(Shards.even(batch.rows(), fabric.size()), uploaded(batch, batch.count()));
        }
        calls += (long) OPERATORS_OF_LAYER * weights.layers().size();
        Matrix found = hostMeans.rows(0, sentences.size());
        means.rows(0, sentences.size()).download(found, memory.stream());
        for (int i = 0; i < to.size(); i++) {
            MemorySegment.copy(
                    found.data(),
                    ValueLayout.JAVA_FLOAT,
                    found.offset(i, 0),
                    to.get(i),
                    0,
                    Weights.WIDTH);
        }
    }

    /** The next power of two: so there are few graphs, and most of their rows are used. */
    private static int rowsOfGraph(GpuTiles batch) {
        int least = Math.max(batch.rows(), batch.count() * GRAPH_ROWS_OF_TILE);
        return Integer.highestOneBit(2 * Math.max(least, LEAST_ROWS_OF_GRAPHS) - 1);
    }

    private GpuLayers prepared(int rows) {
        return new GpuLayers(fabric, gpu, memory, weights, kernels, rows, means);
    }

    /**
     * @param count of tiles, of which the last may be empty
     */
    private DeviceMatrix uploaded(GpuTiles batch, int count) {
        Matrix written = hostTiles.rows(0, count);
        batch.write(written);
        DeviceMatrix to = tiles.rows(0, count);
        to.upload(written, memory.stream());
        return to;
    }

    @Override
    public long calls() {
        return calls;
    }

    @Override
    public void close() {
        gpu.bind();
        memory.close();
    }
}
