package dev.weft.examples.encoder;

import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.stream.IntStream;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * Rows with mean 0 and variance 1, scaled and shifted. Vectors have four elements on every machine,
 * so that sums are always added in the same order.
 */
final class LayerNorm {

    private static final VectorSpecies<Float> SPECIES = FloatVector.SPECIES_128;
    private static final int LANES = SPECIES.length();
    private static final int BLOCK = 4 * LANES;
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
                            int end = Math.min(rows, (part + 1) * ROWS_AT_ONCE);
                            for (int i = part * ROWS_AT_ONCE; i < end; i++) {
                                source.read(i, row);
                                apply(row);
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

    private void apply(float[] row) {
        float mean = sum(row) / WIDTH;
        float variance = squares(row, mean) / WIDTH;
        float factor = (float) (1 / Math.sqrt(variance + EPSILON));
        for (int col = 0; col < WIDTH; col += LANES) {
            load(row, col)
                    .sub(mean)
                    .mul(factor)
                    .fma(load(scale, col), load(shift, col))
                    .intoArray(row, col);
        }
    }

    private static float sum(float[] row) {
        FloatVector s0 = FloatVector.zero(SPECIES);
        FloatVector s1 = s0;
        FloatVector s2 = s0;
        FloatVector s3 = s0;
        for (int col = 0; col < WIDTH; col += BLOCK) {
            s0 = s0.add(load(row, col));
            s1 = s1.add(load(row, col + LANES));
            s2 = s2.add(load(row, col + 2 * LANES));
            s3 = s3.add(load(row, col + 3 * LANES));
        }
        return total(s0.add(s1).add(s2.add(s3)));
    }

    /** The sum of the squares of the differences from {@code mean}. */
    private static float squares(float[] row, float mean) {
        FloatVector s0 = FloatVector.zero(SPECIES);
        FloatVector s1 = s0;
        FloatVector s2 = s0;
        FloatVector s3 = s0;
        for (int col = 0; col < WIDTH; col += BLOCK) {
            FloatVector x0 = load(row, col).sub(mean);
            FloatVector x1 = load(row, col + LANES).sub(mean);
            FloatVector x2 = load(row, col + 2 * LANES).sub(mean);
            FloatVector x3 = load(row, col + 3 * LANES).sub(mean);
            s0 = x0.fma(x0, s0);
            s1 = x1.fma(x1, s1);
            s2 = x2.fma(x2, s2);
            s3 = x3.fma(x3, s3);
        }
        return total(s0.add(s1).add(s2.add(s3)));
    }

    private static float total(FloatVector all) {
        return all.lane(0) + all.lane(1) + (all.lane(2) + all.lane(3));
    }

    private static FloatVector load(float[] from, int at) {
        return FloatVector.fromArray(SPECIES, from, at);
    }
}
