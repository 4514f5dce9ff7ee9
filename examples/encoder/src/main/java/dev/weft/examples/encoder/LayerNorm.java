package dev.weft.examples.encoder;

import dev.weft.op.Operator;
import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Rows with mean 0 and variance 1, scaled and shifted. A sum adds halves, always in the same order.
 */
final class LayerNorm {

    private static final int WIDTH = Weights.WIDTH;

    /** What is left of the width when it cannot be halved any more. */
    private static final int ODD = WIDTH / Integer.lowestOneBit(WIDTH);

    static final float EPSILON = 1e-12f;
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

    void apply(Operator<Matrix> threads, Source source, Matrix to) {
        int rows = (int) to.rows();
        threads.forEach(
                Math.ceilDiv(rows, ROWS_AT_ONCE),
                part -> {
                    float[] row = new float[WIDTH];
                    float[] halves = new float[WIDTH];
                    int end = Math.min(rows, (part + 1) * ROWS_AT_ONCE);
                    for (int i = part * ROWS_AT_ONCE; i < end; i++) {
                        source.read(i, row);
                        apply(row, halves);
                        MemorySegment.copy(
                                row, 0, to.data(), ValueLayout.JAVA_FLOAT, to.offset(i, 0), WIDTH);
                    }
                });
    }

    private void apply(float[] row, float[] halves) {
        System.arraycopy(row, 0, halves, 0, WIDTH);
        float mean = sum(halves) / WIDTH;
        squares(row, mean, halves);
        float variance = sum(halves) / WIDTH;
        float factor = (float) (1 / Math.sqrt(variance + EPSILON));
        for (int col = 0; col < WIDTH; col++) {
            row[col] = Math.fma((row[col] - mean) * factor, scale[col], shift[col]);
        }
    }

    private static void squares(float[] row, float mean, float[] to) {
        for (int col = 0; col < WIDTH; col++) {
            float difference = row[col] - mean;
            to[col] = difference * difference;
        }
    }

    /** Adds the second half to the first, and so on: loops that Java turns into vector code. */
    private static float sum(float[] values) {
        int count = WIDTH;
        while (count > ODD) {
            count /= 2;
            for (int i = 0; i < count; i++) {
                values[i] += values[count + i];
            }
        }
        float sum = values[0];
        for (int i = 1; i < ODD; i++) {
            sum += values[i];
        }
        return sum;
    }
}
