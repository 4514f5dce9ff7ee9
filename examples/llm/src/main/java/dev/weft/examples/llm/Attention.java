package dev.weft.examples.llm;

import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.stream.IntStream;

/**
 * Attention of one rank's heads in one layer, and the keys and values of all chats so far. Each
 * query sums over the tokens before it in their order, with operations that IEEE 754 defines: its
 * bits do not depend on what else is computed, nor on how many tokens came in one call.
 */
final class Attention {

    // Of exp, after Cephes: e^x = 2^n e^r, with r at most ln(2) / 2 from zero.
    private static final float LEAST = -87;
    private static final float LOG2_E = 1.44269504f;
    private static final float LN_2_HIGH = 0.693359375f;
    private static final float LN_2_LOW = -2.12194440e-4f;
    private static final float ROUNDER = 0x1.8p23f;
    private static final float[] P = {
        1.9875691500e-4f,
        1.3981999507e-3f,
        8.3334519073e-3f,
        4.1665795894e-2f,
        1.6666665459e-1f,
        5.0000001201e-1f
    };
    private static final int MANTISSA_BITS = 23;
    private static final int BITS_OF_ONE = 0x3f800000;

    /** A row of a call: which chat it is of, and its place there. */
    record Row(int chat, int place) {}

    private final int width;
    private final int longest;
    private final boolean parallel;
    private final int firstHead;
    private final int heads;
    private final int firstKey;
    private final int sharers;
    private final Rotation rotation;

    /** By chat and head of keys: [column, place], and [place, column]; null until used. */
    private final float[][][] keys;

    private final float[][][] values;

    /**
     * @param parallel whether heads are computed on several threads
     * @param firstHead the first of this rank's heads of queries
     * @param firstKey the first of its heads of keys
     * @param keyHeads how many of those it has
     */
    Attention(
            Shape shape,
            Rotation rotation,
            int chats,
            int longest,
            boolean parallel,
            int firstHead,
            int heads,
            int firstKey,
            int keyHeads) {
        this.width = shape.headWidth();
        this.longest = longest;
        this.parallel = parallel;
        this.firstHead = firstHead;
        this.heads = heads;
        this.firstKey = firstKey;
        this.sharers = shape.sharers();
        this.rotation = rotation;
        this.keys = new float[chats][keyHeads][];
        this.values = new float[chats][keyHeads][];
    }

    /**
     * @param rows of the call
     * @param qkv three matrices of these rows: this rank's columns
     */
    void apply(Row[] rows, Matrix query, Matrix key, Matrix value, Matrix to) {
        float[] row = new float[width];
        for (int head = 0; head < keys[0].length; head++) {
            for (int i = 0; i < rows.length; i++) {
                keep(rows[i], head, i, key, value, row);
            }
        }
        IntStream all = IntStream.range(0, heads * rows.length);
        (parallel ? all.parallel() : all)
                .forEach(i -> head(rows[i / heads], i / heads, i % heads, query, to));
    }

    private void keep(Row row, int head, int index, Matrix key, Matrix value, float[] scratch) {
        if (keys[row.chat()][head] == null) {
            keys[row.chat()][head] = new float[width * longest];
            values[row.chat()][head] = new float[width * longest];
        }
        read(key, index, head, scratch);
        rotation.turn(scratch, row.place());
        float[] columns = keys[row.chat()][head];
        for (int d = 0; d < width; d++) {
            columns[d * longest + row.place()] = scratch[d];
        }
        read(value, index, head, scratch);
        System.arraycopy(scratch, 0, values[row.chat()][head], row.place() * width, width);
    }

    private void read(Matrix from, long row, int head, float[] to) {
        long at = from.offset(row, (long) head * width);
        MemorySegment.copy(from.data(), ValueLayout.JAVA_FLOAT, at, to, 0, width);
    }

    private void head(Row row, int index, int head, Matrix query, Matrix to) {
        int keyHead = (firstHead + head) / sharers - firstKey;
        float[] q = new float[width];
        read(query, index, head, q);
        rotation.turn(q, row.place());
        float factor = (float) (1 / Math.sqrt(width));
        int count = row.place() + 1;
        float[] scores = new float[count];
        float[] columns = keys[row.chat()][keyHead];
        for (int d = 0; d < width; d++) {
            add(scores, q[d] * factor, columns, d * longest, count);
        }
        float sum = powers(scores);
        Arrays.fill(q, 0);
        float[] mixed = values[row.chat()][keyHead];
        for (int t = 0; t < count; t++) {
            add(q, scores[t], mixed, t * width, width);
        }
        for (int d = 0; d < width; d++) {
            q[d] /= sum;
        }
        long at = to.offset(index, (long) head * width);
        MemorySegment.copy(q, 0, to.data(), ValueLayout.JAVA_FLOAT, at, width);
    }

    private static void add(float[] to, float factor, float[] from, int first, int count) {
        for (int i = 0; i < count; i++) {
            to[i] = Math.fma(factor, from[first + i], to[i]);
        }
    }

    /** Turns scores into powers of e, the largest into 1; returns their sum. */
    private static float powers(float[] scores) {
        float most = scores[0];
        for (float score : scores) {
            most = Math.max(most, score);
        }
        for (int i = 0; i < scores.length; i++) {
            scores[i] = exp(scores[i] - most);
        }
        float sum = 0;
        for (float power : scores) {
            sum += power;
        }
        return sum;
    }

    private static float exp(float exponent) {
        float x = Math.max(exponent, LEAST);
        float rounded = Math.fma(LOG2_E, x, ROUNDER);
        float n = rounded - ROUNDER;
        float r = Math.fma(n, -LN_2_LOW, Math.fma(n, -LN_2_HIGH, x));
        float p = P[0];
        for (int i = 1; i < P.length; i++) {
            p = Math.fma(p, r, P[i]);
        }
        p = Math.fma(p, r * r, r) + 1;
        // The rounder leaves n in the lowest bits.
        int power = (Float.floatToRawIntBits(rounded) << MANTISSA_BITS) + BITS_OF_ONE;
        return p * Float.intBitsToFloat(power);
    }

    /** Rotary embeddings: neighbours are turned by an angle that grows with their place. */
    static final class Rotation {

        private final int width;
        private final float[] cosines;
        private final float[] sines;

        Rotation(Shape shape, int longest) {
            width = shape.headWidth();
            int pairs = width / 2;
            cosines = new float[longest * pairs];
            sines = new float[longest * pairs];
            for (int i = 0; i < pairs; i++) {
                double slower = StrictMath.pow(shape.turn(), -2.0 * i / width);
                for (int place = 0; place < longest; place++) {
                    cosines[place * pairs + i] = (float) StrictMath.cos(place * slower);
                    sines[place * pairs + i] = (float) StrictMath.sin(place * slower);
                }
            }
        }

        void turn(float[] row, int place) {
            for (int i = 0; i < width; i += 2) {
                float cosine = cosines[(place * width + i) / 2];
                float sine = sines[(place * width + i) / 2];
                float first = row[i];
                float second = row[i + 1];
                row[i] = first * cosine - second * sine;
                row[i + 1] = first * sine + second * cosine;
            }
        }
    }
}
