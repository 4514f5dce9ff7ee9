package dev.weft.tensor.data;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class NormalDataTest {

    private static final int COUNT = 200_000;

    /** Computed once by an independent program from the definition. */
    @ParameterizedTest
    @CsvSource({
        "0, be930db3",
        "1, 3fb4fd8c",
        "2, bfb13460",
        "3, 3e865851",
        "1000, 3f784c04",
        "1099511627776, bf8bb605"
    })
    void valuesArePinned(long index, String bits) {
        assertEquals(
                bits,
                Integer.toHexString(Float.floatToRawIntBits(new NormalData(42, 0).value(index))));
    }

    @Test
    void aLongRunOfBitsIsPinned() {
        NormalData data = new NormalData(1234567, 3);
        int hash = 0;
        for (long i = 0; i < 1_000_000; i++) {
            hash = 31 * hash + Float.floatToRawIntBits(data.value(i));
        }
        assertEquals(0xDFD59370, hash);
    }

    @ParameterizedTest
    @CsvSource({"1, 0", "1, 1", "42, 7", "-3, 9"})
    void theDistributionIsStandardNormal(long seed, long stream) {
        double[] values = values(new NormalData(seed, stream));
        double mean = Arrays.stream(values).average().orElseThrow();
        double variance = moment(values, 2);
        double skewness = moment(values, 3);
        double kurtosis = moment(values, 4);
        // Five standard deviations of each estimate: 1, 2, 15 and 96 over the count.
        near("mean", 0, mean, 1);
        near("variance", 1, variance, 2);
        near("skewness", 0, skewness, 15);
        near("kurtosis", 3, kurtosis, 96);
        Arrays.sort(values);
        double distance = 0;
        for (int i = 0; i < COUNT; i++) {
            double p = NormalDistribution.below(values[i]);
            distance = Math.max(distance, Math.max(p - (double) i / COUNT, (i + 1.0) / COUNT - p));
        }
        // Kolmogorov: 1.95 is passed by chance once in a thousand seeds, and these are fixed.
        assertTrue(distance * Math.sqrt(COUNT) < 1.95, "distance " + distance);
    }

    private static void near(String what, double expected, double actual, double variance) {
        assertEquals(expected, actual, 5 * Math.sqrt(variance / COUNT), what);
    }

    private static double moment(double[] values, int power) {
        return Arrays.stream(values).map(v -> Math.pow(v, power)).average().orElseThrow();
    }

    private static double[] values(NormalData data) {
        double[] values = new double[COUNT];
        for (int i = 0; i < COUNT; i++) {
            values[i] = data.value(i);
        }
        return values;
    }

    @Test
    void neighboursStreamsAndSeedsAreUncorrelated() {
        double[] base = values(new NormalData(1, 0));
        double[] stream = values(new NormalData(1, 1));
        double[] seed = values(new NormalData(2, 0));
        double[] swapped = values(new NormalData(0, 1));
        double[] shifted = Arrays.copyOfRange(base, 1, COUNT + 1);
        for (double[] other : new double[][] {stream, seed, swapped, shifted}) {
            double sum = 0;
            for (int i = 0; i < COUNT; i++) {
                sum += base[i] * other[i];
            }
            assertEquals(0, sum / COUNT, 5 / Math.sqrt(COUNT));
        }
        assertNotEquals(base[0], stream[0]);
    }

    @Test
    void theTailsAreReached() {
        double[] values = values(new NormalData(1, 0));
        double max = Arrays.stream(values).map(Math::abs).max().orElseThrow();
        assertTrue(max > 4 && max < 6, "largest of " + COUNT + " is " + max);
    }
}
