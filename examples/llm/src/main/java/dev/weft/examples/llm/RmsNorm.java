package dev.weft.examples.llm;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Divides rows by their root mean square, and multiplies columns by weights. Sums are float64, in a
 * fixed order. Unlike {@link dev.weft.op.Epilogue#apply} it keeps its memory, which counts for
 * single rows. For one thread.
 */
final class RmsNorm {

    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT;
    private static final int SUMS = 8;

    private final float[] weight;
    private final float epsilon;
    private final float[] row;

    RmsNorm(Matrix weight, float epsilon) {
        if (weight.rows() != 1 || weight.dtype() != DType.FP32) {
            throw new IllegalArgumentException(
                    "weight of a norm is %s: expected one row of fp32"
                            .formatted(weight.describe()));
        }
        this.weight = weight.toArray();
        this.epsilon = epsilon;
        this.row = new float[this.weight.length];
    }

    void apply(Matrix from, Matrix to) {
        for (long i = 0; i < from.rows(); i++) {
            MemorySegment.copy(from.data(), FLOAT, from.offset(i, 0), row, 0, row.length);
            double mean = squares(row) / row.length;
            scale(row, weight, 1 / Math.sqrt(mean + epsilon));
            MemorySegment.copy(row, 0, to.data(), FLOAT, to.offset(i, 0), row.length);
        }
    }

    /** Eight sums, each of every eighth column, so that they do not wait for each other. */
    private static double squares(float[] row) {
        double s0 = 0;
        double s1 = 0;
        double s2 = 0;
        double s3 = 0;
        double s4 = 0;
        double s5 = 0;
        double s6 = 0;
        double s7 = 0;
        int col = 0;
        for (; col + SUMS <= row.length; col += SUMS) {
            s0 += square(row[col]);
            s1 += square(row[col + 1]);
            s2 += square(row[col + 2]);
            s3 += square(row[col + 3]);
            s4 += square(row[col + 4]);
            s5 += square(row[col + 5]);
            s6 += square(row[col + 6]);
            s7 += square(row[col + 7]);
        }
        for (; col < row.length; col++) {
            s0 += square(row[col]);
        }
        return s0 + s1 + (s2 + s3) + (s4 + s5 + (s6 + s7));
    }

    private static double square(float x) {
        return (double) x * x;
    }

    private static void scale(float[] row, float[] weight, double factor) {
        for (int i = 0; i < row.length; i++) {
            row[i] = (float) (row[i] * factor * weight[i]);
        }
    }
}
