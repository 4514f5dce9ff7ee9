package dev.weft.examples.llm;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
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

    private static final AttentionMath MATH = AttentionMath.best();
    private static final int PLACES = AttentionMath.PLACES;

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

    /** By chat and head of keys: see {@link AttentionMath}; null until used. */
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
        this.longest = padded(longest);
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
        // Waking a thread takes as long as one token's heads.
        (parallel && rows.length > 1 ? all.parallel() : all)
                .forEach(i -> head(rows[i / heads], i / heads, i % heads, query, to));
    }

    private void keep(Row row, int head, int index, Matrix key, Matrix value, float[] scratch) {
        grow(keys[row.chat()], head, row.place());
        grow(values[row.chat()], head, row.place());
        read(key, index, head, scratch);
        rotation.turn(scratch, row.place());
        float[] columns = keys[row.chat()][head];
        int first = row.place() / PLACES * PLACES * width + row.place() % PLACES;
        for (int d = 0; d < width; d++) {
            columns[first + d * PLACES] = scratch[d];
        }
        read(value, index, head, scratch);
        System.arraycopy(scratch, 0, values[row.chat()][head], row.place() * width, width);
    }

    /** Doubles the places until there is this one. */
    private void grow(float[][] ofHeads, int head, int place) {
        int places = ofHeads[head] == null ? 0 : ofHeads[head].length / width;
        if (place >= places) {
            int more = Math.max(padded(place + 1), Math.min(2 * places, longest));
            ofHeads[head] =
                    places == 0
                            ? new float[width * more]
                            : Arrays.copyOf(ofHeads[head], width * more);
        }
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
        for (int d = 0; d < width; d++) {
            q[d] *= factor;
        }
        int count = row.place() + 1;
        float[] scores = new float[padded(count)];
        MATH.scores(q, keys[row.chat()][keyHead], count, scores);
        float most = scores[0];
        for (int place = 1; place < count; place++) {
            most = Math.max(most, scores[place]);
        }
        MATH.powers(scores, most, count);
        float sum = AttentionMath.sum(scores, count);
        MATH.mix(scores, count, values[row.chat()][keyHead], q);
        for (int d = 0; d < width; d++) {
            q[d] /= sum;
        }
        long at = to.offset(index, (long) head * width);
        MemorySegment.copy(q, 0, to.data(), ValueLayout.JAVA_FLOAT, at, width);
    }

    private static int padded(int places) {
        return Math.ceilDiv(places, PLACES) * PLACES;
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

        /** By place: the cosines of all pairs, and then their sines. */
        Matrix table(Arena arena) {
            int pairs = width / 2;
            int longest = cosines.length / pairs;
            Matrix all = Matrix.allocate(arena, DType.FP32, longest, width);
            for (int place = 0; place < longest; place++) {
                for (int i = 0; i < pairs; i++) {
                    all.set(place, i, cosines[place * pairs + i]);
                    all.set(place, pairs + i, sines[place * pairs + i]);
                }
            }
            return all;
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
