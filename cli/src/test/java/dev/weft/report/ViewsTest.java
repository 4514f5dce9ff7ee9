package dev.weft.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class ViewsTest {

    private static Samples us(Double... values) {
        return new Samples(List.of(values));
    }

    @Test
    void medianAndSpreadAreQuantiles() {
        Samples samples = us(5.0, 1.0, 2.0, 4.0, 3.0);
        assertEquals(3.0, samples.median());
        assertEquals(2.0, samples.spread());
        assertEquals(2.5, us(2.0, 3.0).median());
        assertEquals(0.0, us(7.0).spread());
        assertEquals(1.5, Samples.ofNs(new long[] {1500}).median());
        assertThrows(IllegalArgumentException.class, () -> new Samples(List.of()));
    }

    private static Views measured(Samples sequential, Samples pipelined) {
        return new Views(
                us(100.0), us(40.0), sequential, us(40.0), us(100.0), pipelined, false, null);
    }

    @Test
    void ratiosFollowTheSeedsFormulas() {
        Views views = measured(us(140.0, 140.0, 140.0), us(110.0, 110.0, 110.0));
        assertEquals(140.0 / 110.0, views.speedup(), 1e-12);
        assertEquals(30.0 / 140.0, views.saved(), 1e-12);
        assertEquals(30.0 / 40.0, views.overlapEfficiency().getAsDouble(), 1e-12);
        assertEquals(100.0 / 110.0, views.limitFraction(), 1e-12);
        Views worse = measured(us(140.0, 140.0, 140.0), us(150.0, 150.0, 150.0));
        assertEquals(0.0, worse.overlapEfficiency().getAsDouble(), "never negative");
        Views lucky = measured(us(140.0, 140.0, 140.0), us(90.0, 90.0, 90.0));
        assertEquals(1.0, lucky.overlapEfficiency().getAsDouble(), "there is no more to hide");
        assertEquals(1.0, lucky.limitFraction(), "nothing is faster");
    }

    @Test
    void theExamplesViewsAreComparedByTheirMeans() {
        Samples pipelined = us(100.0, 100.0, 130.0);
        Views own = measured(us(140.0), pipelined);
        assertEquals(1.4, own.speedup(), 1e-12);
        Views example =
                new Views(
                        us(100.0), us(40.0), us(140.0), us(40.0), us(100.0), pipelined, false,
                        us(120.0));
        assertEquals(140.0 / 110.0, example.speedup(), 1e-12);
        assertEquals(100.0 / 110.0, example.limitFraction(), 1e-12);
    }

    @Test
    void noiseIsNotCalledAnEfficiency() {
        Samples noisy = us(100.0, 110.0, 140.0, 170.0, 180.0);
        Views views = measured(noisy, us(110.0, 110.0, 110.0, 110.0, 110.0));
        assertTrue(views.overlapEfficiency().isEmpty(), "40 is under three times 31");
        assertEquals(
                "the smaller of gather and product is under 3x the noise",
                views.whyNoEfficiency("gather"));
        Views single = measured(us(140.0), us(110.0));
        assertTrue(single.overlapEfficiency().isEmpty(), "one sample has no noise");
        assertEquals("too few rounds", single.whyNoEfficiency("gather"));
    }

    /** What happens to both calls of a round leaves their ratio alone. */
    @Test
    void disturbancesOfWholeRoundsAreNoNoise() {
        Samples sequential = us(200.0, 400.0, 210.0, 390.0, 300.0);
        Samples half = us(100.0, 200.0, 105.0, 195.0, 150.0);
        assertEquals(0, half.noiseOver(half), 1e-12);
        assertTrue(half.noiseOver(sequential) < 0.1, "" + half.noiseOver(sequential));
        Samples otherwise = us(200.0, 100.0, 195.0, 105.0, 150.0);
        assertTrue(otherwise.noiseOver(sequential) > 0.2, "" + otherwise.noiseOver(sequential));
    }

    /** About 95% of all noises must cover the error; fewer rounds know theirs less well. */
    @Test
    void theNoiseCoversTheErrorOfTheRatio() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        int covered = 0;
        int trials = 2000;
        for (int trial = 0; trial < trials; trial++) {
            List<Double> sequential = new ArrayList<>();
            List<Double> pipelined = new ArrayList<>();
            for (int round = 0; round < 20; round++) {
                double machine = Math.exp(0.2 * random.nextGaussian());
                sequential.add(200 * machine * Math.exp(0.1 * random.nextGaussian()));
                pipelined.add(100 * machine * Math.exp(0.1 * random.nextGaussian()));
            }
            Views views = measured(new Samples(sequential), new Samples(pipelined));
            covered += Math.abs(views.saved() - 0.5) <= views.noise() ? 1 : 0;
        }
        assertTrue(covered > 0.85 * trials, covered + " of " + trials + ", seed " + seed);
        assertTrue(covered < 0.995 * trials, covered + " of " + trials + ", seed " + seed);
    }
}
