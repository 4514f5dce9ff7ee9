package dev.weft.examples.encoder;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaAllGatherMatmulBuilder;
import dev.weft.cuda.op.CudaMatmulReduce;
import dev.weft.cuda.op.CudaOperator;
import dev.weft.cuda.op.CudaWeights;
import dev.weft.fabric.Fabric;
import dev.weft.op.Operator.PendingCall;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.List;

/**
 * One rank's operators of all layers, for calls of up to so many rows. Rows between operators are
 * bf16; each kernel writes them to where the next operator reads them. Used by one thread at a
 * time.
 */
final class GpuLayers {

    private final Fabric fabric;
    private final Gpu gpu;
    private final GpuMemory memory;
    private final GpuWeights weights;
    private final GpuKernels kernels;
    private final Shards most;

    /** Of each sentence. */
    private final DeviceMatrix means;

    /** All rows of the last layer, on every rank. */
    private final DeviceMatrix encoded;

    private final List<Layer> layers = new ArrayList<>();
    private final List<PendingCall<DeviceMatrix>> pending = new ArrayList<>();
    private GpuStream.Graph graph;

    /** The rows of the call under way. */
    private Shards tokens;

    /** Of the call under way. */
    private DeviceMatrix tiles;

    /**
     * Collective.
     *
     * @param means a row for each sentence that a call may have
     */
    GpuLayers(
            Fabric fabric,
            Gpu gpu,
            GpuMemory memory,
            GpuWeights weights,
            GpuKernels kernels,
            int rows,
            DeviceMatrix means) {
        this.fabric = fabric;
        this.gpu = gpu;
        this.memory = memory;
        this.weights = weights;
        this.kernels = kernels;
        this.most = Shards.even(rows, fabric.size());
        this.means = means;
        encoded = memory.zeroed(DType.BF16, rows, Weights.WIDTH);
        List<GpuWeights.Layer> all = weights.layers();
        for (int i = 0; i < all.size(); i++) {
            layers.add(new Layer(all.get(i), i + 1 == all.size()));
        }
    }

    /**
     * Computes the means of the sentences in some tiles; the stream still may have to write them.
     * Collective.
     *
     * @param rows by rank, those that it has
     */
    void run(Shards rows, DeviceMatrix ofTiles) {
        queue(rows, ofTiles);
        pending.forEach(PendingCall::await);
        pending.clear();
    }

    /**
     * Likewise for all rows and a rank that is alone, as a graph. From then on there are no other
     * calls, and the tiles lie in the same place. The first time it also runs as usual, so that
     * nothing is left to load.
     */
    void launch(DeviceMatrix ofTiles) {
        if (graph == null) {
            run(most, ofTiles);
            memory.stream().synchronize();
            graph = memory.open(memory.stream().capture(() -> queue(most, ofTiles)));
            // Nothing was called: what is captured cannot be awaited, and waits for no peer.
            pending.clear();
        }
        graph.launch(memory.stream());
    }

    private void queue(Shards rows, DeviceMatrix ofTiles) {
        tokens = rows;
        tiles = ofTiles;
        DeviceMatrix x = layers.getFirst().queryKeyValue.nextShard(tokens);
        kernels.embed(tiles, weights, tokens.firstRow(fabric.rank()), x);
        for (int i = 0; i < layers.size(); i++) {
            DeviceMatrix to =
                    i + 1 < layers.size()
                            ? layers.get(i + 1).queryKeyValue.nextShard(tokens)
                            : encoded.rows(0, tokens.totalRows());
            layers.get(i).queue(x, to);
            x = to;
        }
        kernels.average(tiles, x, means);
    }

    private void start(CudaOperator operator, DeviceMatrix shard) {
        pending.add(operator.start(shard, tokens, memory.stream(), View.PIPELINED));
    }

    private CudaAllGatherMatmul gathering(CudaWeights b, DType out) {
        CudaAllGatherMatmulBuilder builder =
                fabric.size() == 1
                        ? CudaAllGatherMatmul.withHostPeers(gpu, 0)
                        : CudaAllGatherMatmul.on(fabric, gpu);
        boolean reaches = fabric.size() == 1 || fabric.sharesMemory();
        return memory.open(
                builder.a(most, DType.BF16)
                        .b(b)
                        .output(out)
                        .algorithm(reaches ? Algorithm.MESH_PULL : Algorithm.MESH_PUSH)
                        .prepare());
    }

    /**
     * @param all whether every rank gets the sums of all rows, or each those of its own
     */
    private CudaOperator summing(Shards parts, CudaWeights b, boolean all) {
        if (fabric.size() == 1) {
            return gathering(b, DType.FP32);
        }
        return memory.open(
                CudaMatmulReduce.on(fabric, gpu, all)
                        .a(most, parts, DType.BF16)
                        .b(b)
                        .output(DType.FP32)
                        .algorithm(fabric.sharesMemory() ? Reduction.DIRECT : Reduction.CHAIN)
                        .prepare());
    }

    private final class Layer {

        private final GpuWeights.Layer own;
        private final boolean last;
        final CudaAllGatherMatmul queryKeyValue;
        private final CudaOperator attentionOut;
        private final CudaAllGatherMatmul up;
        private final CudaOperator down;

        /**
         * @param last whether every rank gets all rows
         */
        Layer(GpuWeights.Layer own, boolean last) {
            this.own = own;
            this.last = last;
            queryKeyValue = gathering(own.queryKeyValue().weight(), DType.BF16);
            attentionOut = summing(weights.heads(), own.attentionOut().weight(), false);
            up = gathering(own.up().weight(), DType.BF16);
            down = summing(weights.hidden(), own.down().weight(), last);
        }

        /**
         * @param x this rank's rows, where {@code queryKeyValue} reads them
         */
        void queue(DeviceMatrix x, DeviceMatrix to) {
            start(queryKeyValue, x);
            DeviceMatrix mixed = attentionOut.nextShard(tokens);
            DeviceMatrix products = queryKeyValue.product(0);
            kernels.attend(tiles, products, own.queryKeyValue().bias(), mixed);
            start(attentionOut, mixed);
            DeviceMatrix normed = up.nextShard(tokens);
            DeviceMatrix sums = attentionOut.product(0);
            DeviceMatrix bias = own.attentionOut().bias();
            kernels.addAndNormalize(sums, bias, x, own.attentionNorm(), normed);
            start(up, normed);
            DeviceMatrix hidden = down.nextShard(tokens);
            kernels.activate(up.product(0), own.up().bias(), hidden);
            start(down, hidden);
            DeviceMatrix residual = last ? up.gathered().orElseThrow() : normed;
            kernels.addAndNormalize(down.product(0), own.down().bias(), residual, own.norm(), to);
        }
    }
}
