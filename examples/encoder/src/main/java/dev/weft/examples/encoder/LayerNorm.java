package dev.weft.examples.encoder;

import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.stream.IntStream;

/**
 * Rows with mean 0 and variance 1, scaled and shifted. Sums are sixteen partial sums, always added
 * in the same order.
 */
final class LayerNorm {

    private static final int PARTS = 16;
    private static final int WIDTH = Weights.WIDTH;
    private static final float EPSILON = 1e-12f;
    private static final int ROWS_AT_ONCE = 32;

    private final float[] scale;
    private final float[] shift;

    LayerNorm(Weights.Norm norm) {
        this.scale = norm.scale().toArray();
        this.shift = norm.shift().toArray();
    }

    /** What sets the elements of a row. */
    @FunctionalInterface
    interface Source {
        void read(int row, float[] to);
    }

    void apply(Matrix from, Matrix to) {
        apply(
                (row, values) ->
                        MemorySegment.copy(
                                from.data(),
                                ValueLayout.JAVA_FLOAT,
                                from.offset(row, 0),
                                values,
                                0,
                                WIDTH),
                to);
    }

    void apply(Source source, Matrix to) {
        int rows = (int) to.rows();
        IntStream.range(0, Math.ceilDiv(rows, ROWS_AT_ONCE))
                .parallel()
                .forEach(
                        part -> {
                            float[] row = new float[WIDTH];
                            float[] parts = new float[PARTS];
                            int end = Math.min(rows, (part + 1) * ROWS_AT_ONCE);
                            for (int i = part * ROWS_AT_ONCE; i < end; i++) {
                                source.read(i, row);
                                apply(row, parts);
                                MemorySegment.copy(
                                        row,
                                        0,
                                        to.data(),
                                        ValueLayout.JAVA_FLOAT,
                                        to.offset(i, 0),
                                        WIDTH);
                            }
                        });
    }

    private void apply(float[] row, float[] parts) {
        float mean = sum(row, parts) / WIDTH;
        float variance = squares(row, mean, parts) / WIDTH;
        float factor = (float) (1 / Math.sqrt(variance + EPSILON));
        for (int col = 0; col < WIDTH; col++) {
            row[col] = Math.fma((row[col] - mean) * factor, scale[col], shift[col]);
        }
    }

    private static float sum(float[] row, float[] parts) {
        Arrays.fill(parts, 0);
        for (int col = 0; col < WIDTH; col += PARTS) {
            for (int i = 0; i < PARTS; i++) {
                parts[i] += row[col + i];
            }
        }
        return total(parts);
    }

    /** The sum of the squares of the differences from {@code mean}. */
    private static float squares(float[] row, float mean, float[] parts) {
        Arrays.fill(parts, 0);
        for (int col = 0; col < WIDTH; col += PARTS) {
            for (int i = 0; i < PARTS; i++) {
                float difference = row[col + i] - mean;
                parts[i] = Math.fma(difference, difference, parts[i]);
            }
        }
        return total(parts);
    }

    /** Each with the one four places on, then these four sums. */
    private static float total(float[] parts) {
        for (int i = 0; i < 4; i++) {
            parts[i] = parts[i] + parts[i + 4] + (parts[i + 8] + parts[i + 12]);
        }
        return parts[0] + parts[1] + (parts[2] + parts[3]);
    }
}
