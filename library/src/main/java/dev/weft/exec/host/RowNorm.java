package dev.weft.exec.host;

import dev.weft.gemm.code.Activations;
import dev.weft.op.exec.EpilogueSteps;
import java.util.Arrays;

/**
 * Normalizes rows of fp32 values, with the same bits on every machine. All is computed in float64
 * with operations that IEEE 754 defines exactly, none of them fused, and a result is rounded to
 * fp32 once:
 *
 * <pre>
 * rmsnorm    q = sum(x x) / N,             y = x s w      with s = 1 / sqrt(q + epsilon)
 * layernorm  m = sum(x) / N,  d = x - m
 *            q = sum(d d) / N,             y = d s w + b
 * </pre>
 *
 * A sum over a row is 512 sums that start from +0: number i adds the columns i, i + 512, i + 1024
 * and so on, in this order. Then each of the first half adds the one that is half as many further
 * on, until one is left: first i and i + 256, at the end 0 and 1. Not thread-safe.
 */
final class RowNorm {

    private static final int SUMS = Activations.PIECE;

    /** Sums that are added without a loop. */
    private static final int LAST = 8;

    private final float[] weight;

    /** Null for the root mean square. */
    private final float[] bias;

    private final double epsilon;
    private final float[] row;
    private final double[] sums = new double[SUMS];

    /** Sums beyond the columns stay +0, and adding +0 changes none. */
    private final int used;

    RowNorm(EpilogueSteps.Norm norm) {
        this.weight = norm.weight();
        this.bias = norm.bias();
        this.epsilon = norm.epsilon();
        this.row = new float[weight.length];
        int needed = SUMS;
        while (needed > LAST && needed / 2 >= row.length) {
            needed /= 2;
        }
        this.used = needed;
    }

    int cols() {
        return row.length;
    }

    /** The row that was taken; once it is normalized, the result. */
    float[] row() {
        return row;
    }

    /**
     * Takes the next values of a row.
     *
     * @param count 512, or what is left
     */
    void take(float[] values, int count, int firstCol) {
        System.arraycopy(values, 0, row, firstCol, count);
        if (bias == null) {
            addSquares(values, sums, count);
        } else {
            add(values, sums, count);
        }
    }

    /** Once all values are taken. */
    void normalize() {
        if (bias == null) {
            scale(row, weight, 1 / Math.sqrt(mean() + epsilon));
            return;
        }
        double mean = mean();
        for (int first = 0; first < row.length; first += SUMS) {
            addSquares(row, first, mean, sums, Math.min(SUMS, row.length - first));
        }
        scale(row, mean, weight, 1 / Math.sqrt(mean() + epsilon), bias);
    }

    /** The sum of the sums, which are +0 afterwards, by the number of columns. */
    private double mean() {
        int count = Math.min(row.length, SUMS);
        int rest = count;
        for (int half = used / 2; half >= LAST; half /= 2) {
            add(sums, half, rest - half);
            rest = half;
        }
        double mean = sumOfLast(sums) / row.length;
        Arrays.fill(sums, 0, count, 0);
        return mean;
    }

    /** Adds the second half, which may have fewer. */
    private static void add(double[] sums, int half, int count) {
        for (int i = 0; i < count; i++) {
            sums[i] += sums[half + i];
        }
    }

    /** As loops over 4, 2 and 1, which would take longer than all before. */
    private static double sumOfLast(double[] sums) {
        double even = sums[0] + sums[4] + (sums[2] + sums[6]);
        double odd = sums[1] + sums[5] + (sums[3] + sums[7]);
        return even + odd;
    }

    private static void add(float[] x, double[] sums, int count) {
        for (int i = 0; i < count; i++) {
            sums[i] += x[i];
        }
    }

    private static void addSquares(float[] x, double[] sums, int count) {
        for (int i = 0; i < count; i++) {
            sums[i] += (double) x[i] * x[i];
        }
    }

    private static void addSquares(float[] x, int first, double mean, double[] sums, int count) {
        for (int i = 0; i < count; i++) {
            double d = x[first + i] - mean;
            sums[i] += d * d;
        }
    }

    private static void scale(float[] x, float[] weight, double scale) {
        for (int i = 0; i < x.length; i++) {
            x[i] = (float) (x[i] * scale * weight[i]);
        }
    }

    private static void scale(float[] x, double mean, float[] weight, double scale, float[] bias) {
        for (int i = 0; i < x.length; i++) {
            x[i] = (float) ((x[i] - mean) * scale * weight[i] + bias[i]);
        }
    }
}
