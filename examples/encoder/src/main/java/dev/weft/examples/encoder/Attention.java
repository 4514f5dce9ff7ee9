package dev.weft.examples.encoder;

import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/**
 * softmax(Q x K^T / sqrt(width)) x V of each sentence and head. Queries are computed in blocks, and
 * each query sums over its keys in their order: the bits do not depend on what else is computed.
 */
final class Attention {

    private static final AttentionMath MATH = AttentionMath.best();

    /** Queries at a time. */
    private static final int BLOCK = MATH.block();

    /** Between columns of V: not a power of two, whose multiples share few lines of a cache. */
    private static final int PITCH = Weights.LONGEST + 16;

    private static final int WIDTH = Weights.HEAD_WIDTH;
    private static final float SCALE = (float) (1 / Math.sqrt(WIDTH));

    private static final ThreadLocal<Attention> OF_THREAD = ThreadLocal.withInitial(Attention::new);

    private final float[] row = new float[WIDTH];

    /** [key, column]. */
    private final float[] keys = new float[Weights.LONGEST * WIDTH];

    /** [column, key]. */
    private final float[] values = new float[WIDTH * PITCH];

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
     * @param sentences the rows of each
     * @param qkv three matrices of [rows, columns of this rank's heads]
     */
    static void apply(List<Rows> sentences, List<Matrix> qkv, Matrix to) {
        int heads = (int) to.cols() / WIDTH;
        IntStream.range(0, sentences.size() * heads)
                .parallel()
                .forEach(
                        i ->
                                OF_THREAD
                                        .get()
                                        .head(
                                                sentences.get(i / heads),
                                                qkv,
                                                i % heads * WIDTH,
                                                to));
    }

    /** The rows of one sentence. */
    record Rows(int first, int count) {}

    private void head(Rows rows, List<Matrix> qkv, int column, Matrix to) {
        int count = rows.count();
        int padded = Math.ceilDiv(count, AttentionMath.ROWS) * AttentionMath.ROWS;
        for (int i = 0; i < padded; i++) {
            read(qkv.get(1), rows, i, column);
            System.arraycopy(row, 0, keys, i * WIDTH, WIDTH);
            read(qkv.get(2), rows, i, column);
            for (int d = 0; d < WIDTH; d++) {
                values[d * PITCH + i] = row[d];
            }
        }
        for (int from = 0; from < count; from += BLOCK) {
            for (int i = 0; i < BLOCK; i++) {
                read(qkv.get(0), rows, from + i, column);
                for (int d = 0; d < WIDTH; d++) {
                    queries[d * BLOCK + i] = row[d] * SCALE;
                }
            }
            MATH.multiply(keys, WIDTH, padded, WIDTH, queries, scores);
            MATH.softmax(scores, count, factors);
            MATH.multiply(values, PITCH, WIDTH, count, scores, mixed);
            write(to, rows.first() + from, Math.min(BLOCK, count - from), column);
        }
    }

    /** Zeros past the end of the sentence. */
    private void read(Matrix from, Rows rows, int index, int column) {
        if (index < rows.count()) {
            MemorySegment.copy(
                    from.data(),
                    ValueLayout.JAVA_FLOAT,
                    from.offset(rows.first() + (long) index, column),
                    row,
                    0,
                    WIDTH);
        } else {
            Arrays.fill(row, 0);
        }
    }

    private void write(Matrix to, int firstRow, int count, int column) {
        for (int i = 0; i < count; i++) {
            for (int d = 0; d < WIDTH; d++) {
                row[d] = mixed[d * BLOCK + i] * factors[i];
            }
            long at = to.offset(firstRow + (long) i, column);
            MemorySegment.copy(row, 0, to.data(), ValueLayout.JAVA_FLOAT, at, WIDTH);
        }
    }
}
