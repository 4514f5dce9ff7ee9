package dev.weft.examples.llm;

import dev.weft.examples.llm.Attention.Row;
import dev.weft.fabric.Fabric;
import dev.weft.op.AllGather;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.Epilogue;
import dev.weft.op.MatmulReduceScatter;
import dev.weft.op.Result;
import dev.weft.op.Weights;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.CallLog;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * One rank of a decoder on CPUs. It has some rows of the tokens, some of the heads and some of the
 * hidden columns; every projection is a call of Weft. Used by one thread at a time.
 */
final class HostDecoder implements Decoder {

    private final Fabric fabric;
    private final Model model;
    private final Shape shape;
    private final Split split;
    private final Shards most;
    private final int longest;
    private final int threads;
    private final List<Layer> layers = new ArrayList<>();
    private final List<AutoCloseable> opened = new ArrayList<>();

    /** This rank's rows between layers. */
    private final Matrix embedded;

    private final RmsNorm norm;
    private final AllGatherMatmul head;
    private final AllGather<Matrix> gather;

    /** The rows of the call under way. */
    private Shards tokens;

    private Row[] rows;

    /** Null unless it is wanted. */
    private CallLog log;

    /** Collective. */
    HostDecoder(Fabric fabric, Model model, Capacity capacity) {
        this.fabric = fabric;
        this.model = model;
        this.shape = model.shape();
        this.longest = Math.min(capacity.longest(), shape.longest());
        this.threads = capacity.threads();
        this.split = Split.of(model, fabric.size());
        this.most = Shards.even(capacity.rows(), fabric.size());
        int rank = fabric.rank();
        embedded = Matrix.allocate(Arena.ofAuto(), DType.FP32, most.rows(rank), shape.width());
        norm = new RmsNorm(model.norm(), shape.epsilon());
        Attention.Rotation rotation = new Attention.Rotation(shape, this.longest);
        try {
            for (Model.Layer layer : model.layers()) {
                layers.add(new Layer(layer, rotation, capacity.chats()));
            }
            head = gathering(Epilogue.none(), rows(model.head(), split.vocabulary()));
            gather =
                    AllGather.rows(
                            fabric,
                            split.vocabulary(),
                            1,
                            DType.FP32,
                            fabric.sharesMemory() ? Algorithm.MESH_PULL : Algorithm.MESH_PUSH);
            opened.add(gather);
        } catch (Throwable e) {
            close();
            throw e;
        }
    }

    @Override
    public int longest() {
        return longest;
    }

    @Override
    public float[][] call(CallLog callLog, int[] ids, Row[] all, int... wanted) {
        log = callLog;
        tokens = Shards.even(ids.length, fabric.size());
        rows = all;
        int first = (int) tokens.firstRow(fabric.rank());
        int count = (int) tokens.rows(fabric.rank());
        Matrix x = embedded.rows(0, count);
        for (int i = 0; i < count; i++) {
            model.embedding().row(ids[first + i], x, i);
        }
        for (Layer layer : layers) {
            x = layer.call(x);
        }
        return logits(x, wanted);
    }

    private float[][] logits(Matrix x, int[] wanted) {
        long[] perRank = new long[fabric.size()];
        List<Matrix> own = new ArrayList<>();
        for (int row : wanted) {
            int rank = rankOf(row);
            perRank[rank]++;
            if (rank == fabric.rank()) {
                own.add(x.rows(row - tokens.firstRow(rank), 1));
            }
        }
        Shards shards = Shards.of(perRank);
        Matrix shard = head.nextShard(shards);
        for (int i = 0; i < own.size(); i++) {
            norm.apply(own.get(i), shard.rows(i, 1));
        }
        Matrix part = logged("logits", head.call(shard, shards)).product();
        float[][] all = new float[wanted.length][shape.vocabulary()];
        for (int i = 0; i < wanted.length; i++) {
            MemorySegment.copy(
                    part.data(), part.offset(i, 0), gather.nextShard().data(), 0, 4 * part.cols());
            Matrix gathered = gather.call(gather.nextShard());
            MemorySegment.copy(
                    gathered.data(), ValueLayout.JAVA_FLOAT, 0, all[i], 0, shape.vocabulary());
        }
        return all;
    }

    private int rankOf(int row) {
        int rank = 0;
        while (tokens.firstRow(rank) + tokens.rows(rank) <= row) {
            rank++;
        }
        return rank;
    }

    private Tensor rows(Tensor whole, Shards parts) {
        return whole.rows(parts.firstRow(fabric.rank()), parts.rows(fabric.rank()));
    }

    private Weights packed(Tensor tensor) {
        Weights weights = tensor.pack(fabric);
        opened.addFirst(weights);
        return weights;
    }

    private AllGatherMatmul gathering(Epilogue epilogue, Tensor... sides) {
        var builder = AllGatherMatmul.on(fabric).a(most, DType.FP32);
        if (threads > 0) {
            builder.computeWorkers(threads);
        }
        Arrays.stream(sides).map(this::packed).forEach(builder::b);
        AllGatherMatmul operator =
                builder.algorithm(fabric.sharesMemory() ? Algorithm.DIRECT : Algorithm.MESH_PUSH)
                        .epilogue(epilogue)
                        .prepare();
        opened.add(operator);
        return operator;
    }

    private MatmulReduceScatter scattering(Tensor whole, Shards parts, Epilogue epilogue) {
        int rank = fabric.rank();
        var builder =
                MatmulReduceScatter.on(fabric)
                        .a(most, parts, DType.FP32)
                        .b(packed(whole.cols(parts.firstRow(rank), parts.rows(rank))))
                        .algorithm(
                                fabric.sharesMemory() ? Reduction.DIRECT : Reduction.HIERARCHICAL)
                        .epilogue(epilogue);
        if (threads > 0) {
            builder.computeWorkers(threads);
        }
        MatmulReduceScatter operator = builder.prepare();
        opened.add(operator);
        return operator;
    }

    @Override
    public void close() {
        for (AutoCloseable one : opened.reversed()) {
            try {
                one.close();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }
        opened.clear();
    }

    private final class Layer {

        private final Attention attention;
        private final RmsNorm attentionNorm;
        private final RmsNorm norm;
        private final AllGatherMatmul queryKeyValue;
        private final MatmulReduceScatter attentionOut;
        private final AllGatherMatmul gateUp;
        private final MatmulReduceScatter down;

        /** What is added to the sums of the call under way. */
        private Matrix residual;

        Layer(Model.Layer weights, Attention.Rotation rotation, int chats) {
            int rank = fabric.rank();
            int width = shape.headWidth();
            long firstKey = (long) split.firstKey(rank) * width;
            long keys = (long) split.keyCount(rank) * width;
            attention =
                    new Attention(
                            shape,
                            rotation,
                            chats,
                            longest,
                            threads != 1,
                            split.firstHead(rank),
                            split.headCount(rank),
                            split.firstKey(rank),
                            split.keyCount(rank));
            residual = embedded;
            attentionNorm = new RmsNorm(weights.attentionNorm(), shape.epsilon());
            norm = new RmsNorm(weights.norm(), shape.epsilon());
            Epilogue sum = Epilogue.none().residual(() -> residual);
            queryKeyValue =
                    gathering(
                            Epilogue.none(),
                            rows(weights.query(), split.heads()),
                            weights.key().rows(firstKey, keys),
                            weights.value().rows(firstKey, keys));
            attentionOut = scattering(weights.attentionOut(), split.heads(), sum);
            gateUp =
                    gathering(
                            Epilogue.none().swiglu(),
                            rows(weights.gate(), split.hidden()),
                            rows(weights.up(), split.hidden()));
            down = scattering(weights.down(), split.hidden(), sum);
        }

        /** This rank's rows, valid until the next call. */
        Matrix call(Matrix x) {
            Matrix shard = normed(queryKeyValue, attentionNorm, x);
            var qkv = logged("query, key, value", queryKeyValue.call(shard, tokens));
            Matrix mixed = attentionOut.nextShard(tokens);
            long start = System.nanoTime();
            attention.apply(rows, qkv.product(0), qkv.product(1), qkv.product(2), mixed);
            worked("attention", start);
            residual = x;
            Matrix sums = logged("attention out", attentionOut.call(mixed, tokens)).product();
            shard = normed(gateUp, norm, sums);
            Matrix hidden = down.nextShard(tokens);
            hidden.copyFrom(logged("gate, up", gateUp.call(shard, tokens)).product());
            residual = sums;
            return logged("down", down.call(hidden, tokens)).product();
        }

        private Matrix normed(AllGatherMatmul next, RmsNorm by, Matrix x) {
            long start = System.nanoTime();
            Matrix shard = next.nextShard(tokens);
            by.apply(x, shard);
            worked("norm", start);
            return shard;
        }
    }

    private <R extends Result<?>> R logged(String name, R result) {
        if (log != null) {
            log.call(name, result.timeline());
        }
        return result;
    }

    private void worked(String name, long startNanoTime) {
        if (log != null) {
            log.work(name, startNanoTime);
        }
    }
}
