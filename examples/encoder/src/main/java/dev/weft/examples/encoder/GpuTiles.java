package dev.weft.examples.encoder;

import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Objects;

/**
 * The sentences of a batch, one after the other, in tiles of rows: {@code Tile} in encoder.cu. No
 * tile has rows of two sentences.
 *
 * @param rows tokens of all sentences
 * @param count tiles
 */
record GpuTiles(List<int[]> sentences, int rows, int count) {

    private static final int TILE_ROWS = 16;
    private static final int NUMBERS = 4;

    /** 32 bits each. */
    static final int WORDS = NUMBERS + TILE_ROWS;

    /** Refuses what would have the GPU read past its tables. */
    static GpuTiles of(List<int[]> sentences, long vocabulary) {
        int rows = 0;
        int count = 0;
        for (int[] sentence : sentences) {
            if (sentence.length < 1 || sentence.length > Weights.LONGEST) {
                throw new IllegalArgumentException(
                        "a sentence of %d tokens: expected 1 to %d"
                                .formatted(sentence.length, Weights.LONGEST));
            }
            for (int id : sentence) {
                if (id < 0 || id >= vocabulary) {
                    throw new IllegalArgumentException(
                            "token %d: expected 0 to %d".formatted(id, vocabulary - 1));
                }
            }
            rows += sentence.length;
            count += Math.ceilDiv(sentence.length, TILE_ROWS);
        }
        return new GpuTiles(sentences, rows, count);
    }

    /**
     * Writes a tile into each row.
     *
     * @param to rows of {@link #WORDS} without gaps; those that are left become empty tiles
     */
    void write(Matrix to) {
        MemorySegment words = to.data();
        Objects.checkFromIndexSize(0, count, to.rows());
        words.asSlice(0, to.elementBytes()).fill((byte) 0);
        long at = 0;
        int first = 0;
        for (int number = 0; number < sentences.size(); number++) {
            int[] sentence = sentences.get(number);
            for (int begin = 0; begin < sentence.length; begin += TILE_ROWS) {
                int[] numbers = {first + begin, begin, sentence.length, number};
                int tokens = Math.min(TILE_ROWS, sentence.length - begin);
                MemorySegment.copy(numbers, 0, words, ValueLayout.JAVA_INT, at, NUMBERS);
                long ids = at + NUMBERS * Integer.BYTES;
                MemorySegment.copy(sentence, begin, words, ValueLayout.JAVA_INT, ids, tokens);
                at += WORDS * Integer.BYTES;
            }
            first += sentence.length;
        }
    }
}
