package dev.weft.examples.encoder;

import dev.weft.examples.encoder.Weights.Dense;
import dev.weft.fabric.Fabric;
import dev.weft.op.AllGather;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.Epilogue;
import dev.weft.op.MatmulReduceScatter;
import dev.weft.op.Operator;
import dev.weft.op.Result;
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
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * One rank's part of passes through all layers. A rank has some rows of the tokens, some of the
 * heads and some of the hidden columns; every projection is a call of Weft.
 */
final class Pass implements AutoCloseable {

    private static final int ROWS_AT_ONCE = 64;

    private final Fabric fabric;
    private final Shards most;
    private final Shards heads;
    private final Shards hidden;
    private final Weights weights;
    private final LayerNorm embeddingNorm;
    private final List<Layer> layers = new ArrayList<>();
    private final AllGather<Matrix> gather;

    /** Those of all layers, in the order in which they were prepared. */
    private final List<Operator<Matrix>> operators = new ArrayList<>();

    private long calls;

    /** The rows of the call under way. */
    private Shards tokens;

    /** Of the layer under way; null if nobody wants one. */
    private CallLog log;

    /**
     * Collective.
     *
     * @param rows the most that a call can have
     */
    Pass(Fabric fabric, Weights weights, int rows) {
        this.fabric = fabric;
        this.weights = weights;
        embeddingNorm = new LayerNorm(weights.embeddingNorm());
        most = Shards.even(rows, fabric.size());
        heads = cut(Weights.HEADS, Weights.HEAD_WIDTH);
        hidden = cut(Weights.HIDDEN / Weights.HEAD_WIDTH, Weights.HEAD_WIDTH);
        try {
            weights.layers().forEach(layer -> layers.add(new Layer(layer)));
            gather =
                    AllGather.rows(
                            fabric,
                            most,
                            Weights.WIDTH,
                            DType.FP32,
                            fabric.sharesMemory() ? Algorithm.MESH_PULL : Algorithm.MESH_PUSH);
        } catch (Throwable e) {
            operators.forEach(Operator::close);
            throw e;
        }
    }

    private <T extends Operator<Matrix>> T toClose(T operator) {
        operators.add(operator);
        return operator;
    }

    private Shards cut(int units, int width) {
        Shards even = Shards.even(units, fabric.size());
        long[] columns = new long[fabric.size()];
        for (int r = 0; r < columns.length; r++) {
            columns[r] = even.rows(r) * width;
        }
        return Shards.of(columns);
    }

    /**
     * All rows of the last layer, on every rank; valid until the next call. Collective.
     *
     * @param ids the token of each row, one sentence after the other
     * @param places of the rows in their sentences
     */
    Matrix call(int[] ids, int[] places, List<Attention.Rows> sentences) {
        return call(ids, places, sentences, -1, null);
    }

    /** Also logs one layer. */
    Matrix call(
            int[] ids,
            int[] places,
            List<Attention.Rows> sentences,
            int loggedLayer,
            CallLog layerLog) {
        tokens = Shards.even(ids.length, fabric.size());
        Matrix x = layers.getFirst().queryKeyValue.nextShard(tokens);
        int first = (int) tokens.firstRow(fabric.rank());
        embeddingNorm.apply((row, to) -> embed(ids[first + row], places[first + row], to), x);
        for (int i = 0; i < layers.size(); i++) {
            Layer layer = layers.get(i);
            log = i == loggedLayer ? layerLog : null;
            Matrix sums = layer.call(x, sentences);
            x =
                    i + 1 < layers.size()
                            ? layers.get(i + 1).queryKeyValue.nextShard(tokens)
                            : gather.nextShard(tokens);
            long start = System.nanoTime();
            layer.norm.apply(sums, x);
            logWork("norm", start);
        }
        calls++;
        return gather.call(x, tokens);
    }

    /** Calls of operators so far. */
    long calls() {
        return calls;
    }

    private Result<Matrix> called(String name, Result<Matrix> result) {
        calls++;
        if (log != null) {
            log.call(name, result.timeline());
        }
        return result;
    }

    private void logWork(String name, long startNanoTime) {
        if (log != null) {
            log.work(name, startNanoTime);
        }
    }

    /** What stands for a token, for its sentence and for its place there. */
    private void embed(int id, int place, float[] to) {
        MemorySegment words = weights.words().data();
        MemorySegment types = weights.types().data();
        MemorySegment places = weights.positions().data();
        for (int col = 0; col < to.length; col++) {
            to[col] =
                    words.getAtIndex(ValueLayout.JAVA_FLOAT, (long) id * Weights.WIDTH + col)
                            + types.getAtIndex(ValueLayout.JAVA_FLOAT, col)
                            + places.getAtIndex(
                                    ValueLayout.JAVA_FLOAT, (long) place * Weights.WIDTH + col);
        }
    }

    @Override
    public void close() {
        operators.forEach(Operator::close);
        gather.close();
    }

    private final class Layer {

        final LayerNorm norm;
        private final LayerNorm attentionNorm;
        final AllGatherMatmul queryKeyValue;
        private final MatmulReduceScatter attentionOut;
        private final AllGatherMatmul up;
        private final MatmulReduceScatter down;

        /** What is added to the sums of the call under way. */
        private Matrix residual;

        Layer(Weights.Layer weights) {
            norm = new LayerNorm(weights.norm());
            attentionNorm = new LayerNorm(weights.attentionNorm());
            long rows = most.rows(fabric.rank());
            residual = Matrix.allocate(Arena.ofAuto(), DType.FP32, rows, Weights.WIDTH);
            List<Dense> qkv =
                    Stream.of(weights.query(), weights.key(), weights.value())
                            .map(d -> columns(d, heads))
                            .toList();
            queryKeyValue =
                    gathering(
                            qkv,
                            Epilogue.none()
                                    .bias(qkv.stream().map(Dense::bias).toArray(Matrix[]::new)));
            attentionOut = scattering(weights.attentionOut(), heads);
            Dense own = columns(weights.up(), hidden);
            up = gathering(List.of(own), Epilogue.none().bias(own.bias()).gelu());
            down = scattering(weights.down(), hidden);
        }

        private Dense columns(Dense whole, Shards cut) {
            long first = cut.firstRow(fabric.rank());
            long count = cut.rows(fabric.rank());
            return new Dense(
                    whole.weight().block(0, whole.weight().rows(), first, count),
                    whole.bias().block(0, 1, first, count));
        }

        private AllGatherMatmul gathering(List<Dense> sides, Epilogue epilogue) {
            var builder = AllGatherMatmul.on(fabric).a(most, DType.FP32).engine("portable");
            sides.forEach(side -> builder.b(side.weight()));
            builder.algorithm(fabric.sharesMemory() ? Algorithm.DIRECT : Algorithm.MESH_PUSH);
            return toClose(builder.epilogue(epilogue).prepare());
        }

        private MatmulReduceScatter scattering(Dense whole, Shards cut) {
            Matrix rows = whole.weight().rows(cut.firstRow(fabric.rank()), cut.rows(fabric.rank()));
            return toClose(
                    MatmulReduceScatter.on(fabric)
                            .a(most, cut, DType.FP32)
                            .b(rows)
                            .engine("portable")
                            .algorithm(
                                    fabric.sharesMemory()
                                            ? Reduction.DIRECT
                                            : Reduction.HIERARCHICAL)
                            .epilogue(Epilogue.none().bias(whole.bias()).residual(() -> residual))
                            .prepare());
        }

        /** The sums that the second norm is applied to; valid until the next call. */
        Matrix call(Matrix x, List<Attention.Rows> sentences) {
            Result<Matrix> qkv = called("query, key, value", queryKeyValue.call(x, tokens));
            Matrix mixed = attentionOut.nextShard(tokens);
            long start = System.nanoTime();
            Attention.apply(
                    sentences, List.of(qkv.product(0), qkv.product(1), qkv.product(2)), mixed);
            logWork("attention", start);
            residual = x;
            Matrix sums = called("attention out", attentionOut.call(mixed, tokens)).product();
            Matrix normed = up.nextShard(tokens);
            start = System.nanoTime();
            attentionNorm.apply(sums, normed);
            logWork("norm", start);
            residual = normed;
            Matrix activated = called("up", up.call(normed, tokens)).product();
            Matrix place = down.nextShard(tokens);
            start = System.nanoTime();
            // As call() would, but not on one thread alone.
            IntStream.range(0, Math.ceilDiv((int) place.rows(), ROWS_AT_ONCE))
                    .parallel()
                    .forEach(part -> copyRows(activated, place, part * ROWS_AT_ONCE));
            logWork("copy", start);
            return called("down", down.call(place, tokens)).product();
        }

        private static void copyRows(Matrix from, Matrix to, int first) {
            long count = Math.min(ROWS_AT_ONCE, to.rows() - first);
            to.copyBlock(from, first, 0, first, 0, count, to.cols());
        }
    }
}
