package dev.weft.examples.encoder;

import dev.weft.cuda.Gpu;
import dev.weft.fabric.Fabric;
import java.util.Arrays;
import java.util.List;

/**
 * One rank of the encoder. Sentences are encoded together, in batches of a limited number of
 * tokens. What a sentence gives does not depend on its batch. Used by one thread at a time.
 */
public final class RankEncoder implements AutoCloseable {

    private static final int MOST_ROWS = 2048;
    private static final int MOST_ROWS_ON_GPU = 8192;

    private final int mostRows;
    private final EncoderPass pass;

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
        this(mostRows, new Pass(checked(fabric), weights, mostRows));
    }

    private RankEncoder(int mostRows, EncoderPass pass) {
        this.mostRows = mostRows;
        this.pass = pass;
    }

    /** One on a GPU, which ranks may share. Collective. */
    public static RankEncoder onGpu(Fabric fabric, Weights weights, Gpu gpu) {
        return new RankEncoder(
                MOST_ROWS_ON_GPU, new GpuPass(checked(fabric), weights, MOST_ROWS_ON_GPU, gpu));
    }

    private static Fabric checked(Fabric fabric) {
        if (fabric.size() > Weights.HEADS) {
            throw new IllegalArgumentException(
                    "%d ranks: expected at most %d, a head for each"
                            .formatted(fabric.size(), Weights.HEADS));
        }
        return fabric;
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
            pass.encode(sentences.subList(from, to), Arrays.asList(means).subList(from, to));
            from = to;
        }
        return means;
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
