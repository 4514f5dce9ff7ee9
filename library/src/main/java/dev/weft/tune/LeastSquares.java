package dev.weft.tune;

import java.util.Arrays;

/**
 * Least squares with non-negative coefficients: minimises the squares of the relative errors
 * between the weighted sums of features and what was measured. Uses coordinate descent, since there
 * are few features and samples.
 */
final class LeastSquares {

    private static final int ROUNDS = 20_000;

    private LeastSquares() {}

    /** Features are given by sample; none of the samples is zero. */
    static double[] fit(double[][] features, double[] measured) {
        int count = features[0].length;
        double[][] scaled = new double[measured.length][count];
        for (int s = 0; s < measured.length; s++) {
            for (int f = 0; f < count; f++) {
                scaled[s][f] = features[s][f] / measured[s];
            }
        }
        double[] weights = new double[count];
        double[] left = new double[measured.length];
        Arrays.fill(left, 1);
        for (int round = 0; round < ROUNDS; round++) {
            for (int f = 0; f < count; f++) {
                improve(scaled, left, weights, f);
            }
        }
        return weights;
    }

    private static void improve(double[][] scaled, double[] left, double[] weights, int f) {
        double along = 0;
        double norm = 0;
        for (int s = 0; s < left.length; s++) {
            along += scaled[s][f] * left[s];
            norm += scaled[s][f] * scaled[s][f];
        }
        if (norm == 0) {
            return;
        }
        double next = Math.max(0, weights[f] + along / norm);
        double change = next - weights[f];
        weights[f] = next;
        for (int s = 0; s < left.length; s++) {
            left[s] -= change * scaled[s][f];
        }
    }
}
