package dev.weft.tune;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class LeastSquaresTest {

    @Test
    void findsTheCoefficientsThatMadeTheSamples() {
        double[][] features = {{1, 0, 5}, {2, 1, 5}, {30, 1, 5}, {4, 20, 5}, {7, 7, 5}};
        double[] measured = new double[features.length];
        for (int s = 0; s < measured.length; s++) {
            measured[s] = 3 * features[s][0] + 0.5 * features[s][1] + 2 * features[s][2];
        }
        assertArrayEquals(new double[] {3, 0.5, 2}, LeastSquares.fit(features, measured), 1e-6);
    }

    @Test
    void noCoefficientIsNegative() {
        double[][] features = {{1, 1}, {2, 1}, {3, 1}};
        double[] fitted = LeastSquares.fit(features, new double[] {3, 2, 1});
        assertEquals(0, fitted[0]);
    }

    @Test
    void aFeatureThatNothingHasGetsNothing() {
        double[] fitted = LeastSquares.fit(new double[][] {{2, 0}, {4, 0}}, new double[] {6, 12});
        assertArrayEquals(new double[] {3, 0}, fitted, 1e-9);
    }
}
