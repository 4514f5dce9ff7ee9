package dev.weft.examples.encoder;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.op.CudaWeights;
import dev.weft.fabric.Fabric;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;

/**
 * What a rank has of the weights on its GPU: those that are multiplied in bf16, all others in fp32.
 */
final class GpuWeights {

    private final GpuMemory memory;
    private final Gpu gpu;
    private final int rank;
    private final Shards heads;
    private final Shards hidden;
    private final DeviceMatrix words;
    private final DeviceMatrix positions;
    private final DeviceMatrix types;
    private final Norm embeddingNorm;
    private final List<Layer> layers = new ArrayList<>();

    /** A projection: a weight of [K, N], and a bias for each column of a whole row. */
    record Dense(CudaWeights weight, DeviceMatrix bias) {}

    record Norm(DeviceMatrix scale, DeviceMatrix shift) {}

    /**
     * One of the layers.
     *
     * @param queryKeyValue side by side, so that there is one product
     */
    record Layer(
            Dense queryKeyValue,
            Dense attentionOut,
            Norm attentionNorm,
            Dense up,
            Dense down,
            Norm norm) {}

    GpuWeights(Fabric fabric, Weights weights, Gpu gpu, GpuMemory memory) {
        this.memory = memory;
        this.gpu = gpu;
        this.rank = fabric.rank();
        this.heads = cut(Weights.WIDTH, fabric.size());
        this.hidden = cut(Weights.HIDDEN, fabric.size());
        words = memory.uploaded(weights.words());
        positions = memory.uploaded(weights.positions());
        types = memory.uploaded(weights.types());
        embeddingNorm = norm(weights.embeddingNorm());
        for (Weights.Layer layer : weights.layers()) {
            layers.add(
                    new Layer(
                            queryKeyValue(layer),
                            dense(rows(layer.attentionOut(), heads)),
                            norm(layer.attentionNorm()),
                            dense(columns(layer.up(), hidden)),
                            dense(rows(layer.down(), hidden)),
                            norm(layer.norm())));
        }
    }

    /**
     * Between heads. GPUs sum 16 k at a time, of which a head's width is a multiple, so sums over
     * ranks have the bits of one rank.
     */
    private static Shards cut(int columns, int ranks) {
        Shards even = Shards.even(columns / Weights.HEAD_WIDTH, ranks);
        long[] parts = new long[ranks];
        for (int r = 0; r < ranks; r++) {
            parts[r] = even.rows(r) * Weights.HEAD_WIDTH;
        }
        return Shards.of(parts);
    }

    private Weights.Dense columns(Weights.Dense whole, Shards cut) {
        long first = cut.firstRow(rank);
        long count = cut.rows(rank);
        return new Weights.Dense(
                whole.weight().block(0, whole.weight().rows(), first, count),
                whole.bias().block(0, 1, first, count));
    }

    private Weights.Dense rows(Weights.Dense whole, Shards cut) {
        Matrix rows = whole.weight().rows(cut.firstRow(rank), cut.rows(rank));
        return new Weights.Dense(rows, whole.bias());
    }

    private Dense queryKeyValue(Weights.Layer layer) {
        long count = heads.rows(rank);
        try (Arena arena = Arena.ofConfined()) {
            Matrix weight = Matrix.allocate(arena, DType.FP32, Weights.WIDTH, 3 * count);
            Matrix bias = Matrix.allocate(arena, DType.FP32, 1, 3 * count);
            long at = 0;
            for (Weights.Dense one : List.of(layer.query(), layer.key(), layer.value())) {
                Weights.Dense own = columns(one, heads);
                weight.block(0, Weights.WIDTH, at, count).copyFrom(own.weight());
                bias.block(0, 1, at, count).copyFrom(own.bias());
                at += count;
            }
            return dense(new Weights.Dense(weight, bias));
        }
    }

    private Dense dense(Weights.Dense part) {
        try (Arena arena = Arena.ofConfined()) {
            Matrix rounded = part.weight().converted(arena, DType.BF16);
            CudaWeights weight = memory.open(CudaWeights.copyOf(gpu, rounded, false));
            return new Dense(weight, memory.uploaded(part.bias()));
        }
    }

    private Norm norm(Weights.Norm norm) {
        return new Norm(memory.uploaded(norm.scale()), memory.uploaded(norm.shift()));
    }

    /** By rank, the columns of its heads. */
    Shards heads() {
        return heads;
    }

    /** By rank, its hidden columns. */
    Shards hidden() {
        return hidden;
    }

    DeviceMatrix words() {
        return words;
    }

    DeviceMatrix positions() {
        return positions;
    }

    DeviceMatrix types() {
        return types;
    }

    Norm embeddingNorm() {
        return embeddingNorm;
    }

    List<Layer> layers() {
        return layers;
    }
}
