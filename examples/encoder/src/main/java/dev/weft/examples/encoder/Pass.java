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
import java.util.stream.Stream;

/**
 * One rank's part of passes through all layers. A rank has some rows of the tokens, some of the
 * heads and some of the hidden columns; every projection is a call of Weft.
 */
final class Pass implements EncoderPass {

    private static final int ROWS_AT_ONCE = 64;

    private final Fabric fabric;
    private final Shards most;
    private final Shards heads;
    private final Shards hidden;
    private final Weights weights;
    private final LayerNorm embeddingNorm;

    /** This rank's rows before the first layer. */
    private final Matrix embedded;

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
        embedded =
                Matrix.allocate(
                        Arena.ofAuto(), DType.FP32, most.rows(fabric.rank()), Weights.WIDTH);
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

    @Override
    public void encode(List<int[]> sentences, List<float[]> means) {
        int count = sentences.stream().mapToInt(sentence -> sentence.length).sum();
        int[] ids = new int[count];
        int[] places = new int[count];
        List<Attention.Rows> rows = new ArrayList<>();
        int first = 0;
        for (int[] sentence : sentences) {
            for (int place = 0; place < sentence.length; place++) {
                ids[first + place] = sentence[place];
                places[first + place] = place;
            }
            rows.add(new Attention.Rows(first, sentence.length));
            first += sentence.length;
        }
        Matrix out = call(ids, places, rows);
        for (int i = 0; i < rows.size(); i++) {
            average(out, rows.get(i), means.get(i));
        }
    }

    private static void average(Matrix out, Attention.Rows rows, float[] mean) {
        float[] one = new float[mean.length];
        for (int row = rows.first(); row < rows.first() + rows.count(); row++) {
            MemorySegment.copy(
                    out.data(), ValueLayout.JAVA_FLOAT, out.offset(row, 0), one, 0, one.length);
            for (int col = 0; col < one.length; col++) {
                mean[col] += one[col];
            }
        }
        for (int col = 0; col < mean.length; col++) {
            mean[col] /= rows.count();
        }
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
        Matrix x = embedded.rows(0, tokens.rows(fabric.rank()));
        int first = (int) tokens.firstRow(fabric.rank());
        embeddingNorm.apply(
                operators.getFirst(),
                (row, to) -> embed(ids[first + row], places[first + row], to),
                x);
        for (int i = 0; i < layers.size(); i++) {
            Layer layer = layers.get(i);
            log = i == loggedLayer ? layerLog : null;
            x = layer.call(x, sentences);
        }
        calls++;
        return gather.call(x, tokens);
    }

    @Override
    public long calls() {
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

    /**
     * Calls an operator with rows that another one has computed. What other ranks read is copied
     * first, as the call would, but not on one thread alone.
     */
    private Result<Matrix> call(String name, Operator<Matrix> operator, Matrix rows) {
        if (fabric.size() == 1) {
            return called(name, operator.call(rows, tokens));
        }
        Matrix place = operator.nextShard(tokens);
        long start = System.nanoTime();
        operator.forEach(
                Math.ceilDiv((int) place.rows(), ROWS_AT_ONCE),
                part -> copyRows(rows, place, part * ROWS_AT_ONCE));
        logWork("copy", start);
        return called(name, operator.call(place, tokens));
    }

    private static void copyRows(Matrix from, Matrix to, int first) {
        long count = Math.min(ROWS_AT_ONCE, to.rows() - first);
        to.copyBlock(from, first, 0, first, 0, count, to.cols());
    }

    private final class Layer {

        private final AllGatherMatmul queryKeyValue;
        private final MatmulReduceScatter attentionOut;
        private final AllGatherMatmul up;
        private final MatmulReduceScatter down;

        /** What is added to the sums of the call under way. */
        private Matrix residual;

        Layer(Weights.Layer weights) {
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
            attentionOut = scattering(weights.attentionOut(), heads, weights.attentionNorm());
            Dense own = columns(weights.up(), hidden);
            up = gathering(List.of(own), Epilogue.none().bias(own.bias()).gelu());
            down = scattering(weights.down(), hidden, weights.norm());
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

        private MatmulReduceScatter scattering(Dense whole, Shards cut, Weights.Norm norm) {
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
                            .epilogue(
                                    Epilogue.none()
                                            .bias(whole.bias())
                                            .residual(() -> residual)
                                            .layerNorm(
                                                    norm.scale(), norm.shift(), LayerNorm.EPSILON))
                            .prepare());
        }

        /** This rank's rows after the layer; valid until its next call. */
        Matrix call(Matrix x, List<Attention.Rows> sentences) {
            Result<Matrix> qkv = Pass.this.call("query, key, value", queryKeyValue, x);
            Matrix mixed = attentionOut.nextShard(tokens);
            long start = System.nanoTime();
            Attention.apply(
                    queryKeyValue,
                    sentences,
                    List.of(qkv.product(0), qkv.product(1), qkv.product(2)),
                    mixed);
            logWork("attention", start);
            residual = x;
            Matrix normed = called("attention out", attentionOut.call(mixed, tokens)).product();
            residual = normed;
            Matrix activated = Pass.this.call("up", up, normed).product();
            return Pass.this.call("down", down, activated).product();
        }
    }
}
