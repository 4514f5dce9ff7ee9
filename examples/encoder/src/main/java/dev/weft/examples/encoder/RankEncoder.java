package dev.weft.examples.encoder;

import dev.weft.fabric.Fabric;
import dev.weft.tensor.Matrix;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * One rank of the encoder. Sentences are encoded together, in batches of a limited number of
 * tokens. What a sentence gives does not depend on its batch. Used by one thread at a time.
 */
public final class RankEncoder implements AutoCloseable {

    private static final int MOST_ROWS = 2048;

    private final int mostRows;
    private final Pass pass;

    /** Collective. */
    RankEncoder(Fabric fabric, Weights weights) {
        this(fabric, weights, MOST_ROWS);
    }

    /**
     * Collective.
     *
     * @param mostRows the most tokens of a batch, at least those of the longest sentence
     */
    public RankEncoder(Fabric fabric, Weights weights, int mostRows) {
        if (fabric.size() > Weights.HEADS) {
            throw new IllegalArgumentException(
                    "%d ranks: expected at most %d, a head for each"
                            .formatted(fabric.size(), Weights.HEADS));
        }
        this.mostRows = mostRows;
        pass = new Pass(fabric, weights, mostRows);
    }

    /**
     * The mean of the last layer over each sentence's tokens. Collective; the same on all ranks.
     */
    public float[][] encode(List<int[]> sentences) {
        float[][] means = new float[sentences.size()][Weights.WIDTH];
        int from = 0;
        while (from < sentences.size()) {
            int to = from;
            int rows = 0;
            while (to < sentences.size() && rows + sentences.get(to).length <= mostRows) {
                rows += sentences.get(to++).length;
            }
            if (to == from) {
                throw new IllegalArgumentException(
                        "a sentence of %d tokens: expected at most %d"
                                .formatted(sentences.get(to).length, mostRows));
            }
            encode(sentences.subList(from, to), rows, Arrays.asList(means).subList(from, to));
            from = to;
        }
        return means;
    }

    private void encode(List<int[]> batch, int count, List<float[]> means) {
        int[] ids = new int[count];
        int[] places = new int[count];
        List<Attention.Rows> rows = new ArrayList<>();
        int first = 0;
        for (int[] sentence : batch) {
            for (int place = 0; place < sentence.length; place++) {
                ids[first + place] = sentence[place];
                places[first + place] = place;
            }
            rows.add(new Attention.Rows(first, sentence.length));
            first += sentence.length;
        }
        Matrix out = pass.call(ids, places, rows);
        for (int i = 0; i < rows.size(); i++) {
            pool(out, rows.get(i), means.get(i));
        }
    }

    private static void pool(Matrix out, Attention.Rows rows, float[] mean) {
        for (int row = rows.first(); row < rows.first() + rows.count(); row++) {
            for (int col = 0; col < mean.length; col++) {
                mean[col] += out.get(row, col);
            }
        }
        for (int col = 0; col < mean.length; col++) {
            mean[col] /= rows.count();
        }
    }

    /** Calls of operators on this rank so far. */
    public long calls() {
        return pass.calls();
    }

    @Override
    public void close() {
        pass.close();
    }
}
