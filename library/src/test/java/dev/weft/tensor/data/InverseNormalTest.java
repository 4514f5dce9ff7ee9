package dev.weft.tensor.data;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Random;
import org.junit.jupiter.api.Test;

class InverseNormalTest {

    @Test
    void theDistributionFunctionUndoesItOverTheWholeRange() {
        for (int i = 1; i < 2000; i++) {
            check(i / 2000.0);
        }
        for (double p = 0x1p-53; p < 0.1; p *= 1.01) {
            check(p);
        }
    }

    private static void check(double p) {
        double back = NormalDistribution.below(InverseNormal.of(p));
        double relative = Math.abs(back - p) / p;
        assertTrue(relative < 3e-14, "p " + p + " comes back as " + back);
    }

    @Test
    void itIsExactlySymmetric() {
        long seed = 5;
        Random random = new Random(seed);
        for (int i = 0; i < 100_000; i++) {
            double p = ((random.nextLong() >>> 12 >>> random.nextInt(50)) + 0.5) * 0x1p-52;
            assertEquals(InverseNormal.of(p), -InverseNormal.of(1 - p), "seed " + seed + " p " + p);
        }
        assertEquals(0.0, InverseNormal.of(0.5));
    }

    @Test
    void itRisesAcrossTheSeams() {
        double farSeam = Math.exp(-25);
        for (double seam : new double[] {0.075, 0.925, farSeam, 0.5}) {
            double step = seam * 1e-13;
            double before = InverseNormal.of(seam - 2 * step);
            double after = InverseNormal.of(seam + 2 * step);
            assertTrue(before < after && after - before < 1e-11, "at " + seam);
        }
    }

    @Test
    void valuesFromTablesAreMet() {
        assertEquals(1.959963984540054, InverseNormal.of(0.975), 4e-16 * 2);
        assertEquals(-2.3263478740408408, InverseNormal.of(0.01), 4e-16 * 3);
        assertEquals(-4.264890793922825, InverseNormal.of(1e-5), 1e-14);
        assertEquals(-7.034483825301132, InverseNormal.of(1e-12), 1e-14);
    }
}
