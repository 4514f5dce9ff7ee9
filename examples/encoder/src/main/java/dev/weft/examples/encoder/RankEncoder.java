package dev.weft.examples.encoder;

import dev.weft.fabric.Fabric;
import dev.weft.tensor.Matrix;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;

/**
 * One rank of the encoder. Sentences are put together in batches of a few numbers of rows, so that
 * operators are prepared once for each such number; rows that are left over are multiplied in vain.
 * What a sentence gives does not depend on its batch.
 */
final class RankEncoder implements AutoCloseable {

    private static final int FEWEST_ROWS = 16;
    private static final int MOST_ROWS = 2048;

    private final Fabric fabric;
    private final Weights weights;
    private final Map<Integer, Pass> passes = new TreeMap<>();

    RankEncoder(Fabric fabric, Weights weights) {
        if (fabric.size() > Weights.HEADS) {
            throw new IllegalArgumentException(
                    "%d ranks: expected at most %d, a head for each"
                            .formatted(fabric.size(), Weights.HEADS));
        }
        this.fabric = fabric;
        this.weights = weights;
    }

    /** Sentences of one pass, by their numbers. */
    record Batch(int rows, List<Integer> sentences) {}

    /** Long sentences first; each batch wastes little, unless its sentences leave no choice. */
    static List<Batch> batches(List<int[]> sentences) {
        List<Integer> left = new ArrayList<>(IntStream.range(0, sentences.size()).boxed().toList());
        left.sort(Comparator.comparingInt(i -> -sentences.get(i).length));
        List<Batch> batches = new ArrayList<>();
        while (!left.isEmpty()) {
            int total = left.stream().mapToInt(i -> sentences.get(i).length).sum();
            int rows = FEWEST_ROWS;
            while (rows < total && rows < MOST_ROWS) {
                rows *= 2;
            }
            boolean half =
                    total <= rows * 3 / 4 && sentences.get(left.getFirst()).length <= rows / 2;
            if (half && rows > FEWEST_ROWS) {
                rows /= 2;
            }
            int free = rows;
            List<Integer> taken = new ArrayList<>();
            for (int i : left) {
                if (sentences.get(i).length <= free) {
                    taken.add(i);
                    free -= sentences.get(i).length;
                }
            }
            left.removeAll(taken);
            batches.add(new Batch(rows, taken));
        }
        return batches;
    }

    /**
     * The mean of the last layer over each sentence's tokens. Collective; the same on all ranks.
     */
    float[][] encode(List<int[]> sentences) {
        float[][] means = new float[sentences.size()][Weights.WIDTH];
        for (Batch batch : batches(sentences)) {
            int[] ids = new int[batch.rows()];
            int[] places = new int[batch.rows()];
            List<Attention.Rows> rows = new ArrayList<>();
            int first = 0;
            for (int i : batch.sentences()) {
                int[] sentence = sentences.get(i);
                for (int place = 0; place < sentence.length; place++) {
                    ids[first + place] = sentence[place];
                    places[first + place] = place;
                }
                rows.add(new Attention.Rows(first, sentence.length));
                first += sentence.length;
            }
            Matrix out = pass(batch.rows()).call(ids, places, rows);
            for (int i = 0; i < rows.size(); i++) {
                pool(out, rows.get(i), means[batch.sentences().get(i)]);
            }
        }
        return means;
    }

    private Pass pass(int rows) {
        Pass known = passes.get(rows);
        if (known == null) {
            known = new Pass(fabric, weights, rows);
            passes.put(rows, known);
        }
        return known;
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

    @Override
    public void close() {
        passes.values().forEach(Pass::close);
    }
}
