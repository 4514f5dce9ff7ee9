package dev.weft.examples.encoder;

import dev.weft.op.Operator;
import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;

/**
 * softmax(Q x K^T / sqrt(width)) x V of each sentence and head. Queries are computed in blocks, and
 * each query sums over its keys in their order: the bits do not depend on what else is computed.
 */
final class Attention {

    private static final AttentionMath MATH = AttentionMath.best();

    /** Queries at a time. */
    private static final int BLOCK = MATH.block();

    private static final int WIDTH = Weights.HEAD_WIDTH;
    private static final float SCALE = (float) (1 / Math.sqrt(WIDTH));

    private static final ThreadLocal<Attention> OF_THREAD = ThreadLocal.withInitial(Attention::new);

    /** [query, column]: of a block, before and after. */
    private final float[] rows = new float[BLOCK * WIDTH];

    /** [key, column]. */
    private final float[] keys = new float[Weights.LONGEST * WIDTH];

    /** [key, column]. */
    private final float[] values = new float[Weights.LONGEST * WIDTH];

    /** [column, query]. */
    private final float[] queries = new float[WIDTH * BLOCK];

    /** [key, query]. */
    private final float[] scores = new float[Weights.LONGEST * BLOCK];

    /** By query. */
    private final float[] factors = new float[BLOCK];

    /** [column, query]. */
    private final float[] mixed = new float[WIDTH * BLOCK];

    private Attention() {}

    /**
     * @param threads the operator whose threads do it
     * @param sentences the rows of each
     * @param qkv three matrices of [rows, columns of this rank's heads]
     */
    static void apply(Operator<Matrix> threads, List<Rows> sentences, List<Matrix> qkv, Matrix to) {
        int heads = (int) to.cols() / WIDTH;
        threads.forEach(
                sentences.size() * heads,
                i -> OF_THREAD.get().head(sentences.get(i / heads), qkv, i % heads * WIDTH, to));
    }

    /** The rows of one sentence. */
    record Rows(int first, int count) {}

    private void head(Rows sentence, List<Matrix> qkv, int column, Matrix to) {
        int count = sentence.count();
        int padded = Math.ceilDiv(count, AttentionMath.ROWS) * AttentionMath.ROWS;
        for (int i = 0; i < padded; i++) {
            read(qkv.get(1), sentence, i, column, keys, i * WIDTH);
            read(qkv.get(2), sentence, i, column, values, i * WIDTH);
        }
        for (int from = 0; from < count; from += BLOCK) {
            for (int i = 0; i < BLOCK; i++) {
                read(qkv.get(0), sentence, from + i, column, rows, i * WIDTH);
            }
            for (int d = 0; d < WIDTH; d++) {
                for (int i = 0; i < BLOCK; i++) {
                    queries[d * BLOCK + i] = rows[i * WIDTH + d] * SCALE;
                }
            }
            MATH.multiply(keys, WIDTH, 1, padded, WIDTH, queries, scores);
            MATH.softmax(scores, count, factors);
            MATH.multiply(values, 1, WIDTH, WIDTH, count, scores, mixed);
            write(to, sentence.first() + from, Math.min(BLOCK, count - from), column);
        }
    }

    /** Zeros past the end of the sentence. */
    private static void read(
            Matrix from, Rows sentence, int index, int column, float[] to, int at) {
        if (index < sentence.count()) {
            MATH.copy(from.data(), from.offset(sentence.first() + (long) index, column), to, at);
        } else {
            Arrays.fill(to, at, at + WIDTH, 0);
        }
    }

    private void write(Matrix to, int firstRow, int count, int column) {
        for (int i = 0; i < count; i++) {
            for (int d = 0; d < WIDTH; d++) {
                rows[i * WIDTH + d] = mixed[d * BLOCK + i] * factors[i];
            }
        }
        for (int i = 0; i < count; i++) {
            long at = to.offset(firstRow + (long) i, column);
            MemorySegment.copy(rows, i * WIDTH, to.data(), ValueLayout.JAVA_FLOAT, at, WIDTH);
        }
    }
}
