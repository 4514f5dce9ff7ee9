package dev.weft.examples.encoder;

import java.util.List;

/**
 * One rank's part of passes through all layers, on CPUs or on a GPU. Used by one thread at a time.
 */
sealed interface EncoderPass extends AutoCloseable permits Pass, GpuPass {

    /**
     * Writes the mean of the last layer over each sentence's tokens. Collective; the same on all
     * ranks.
     *
     * @param sentences their tokens, in all no more than were prepared for
     * @param means one for each sentence, all zeros
     */
    void encode(List<int[]> sentences, List<float[]> means);

    /** Calls of operators so far. */
    long calls();

    @Override
    void close();
}
