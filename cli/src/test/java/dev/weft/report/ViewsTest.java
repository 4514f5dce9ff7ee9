package dev.weft.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
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
        return new Views(us(100.0), us(40.0), sequential, us(40.0), us(100.0), pipelined, false);
    }

    @Test
    void ratiosFollowTheSeedsFormulas() {
        Views views = measured(us(140.0), us(110.0, 110.0, 110.0));
        assertEquals(140.0 / 110.0, views.speedup(), 1e-12);
        assertEquals(30.0 / 40.0, views.overlapEfficiency().getAsDouble(), 1e-12);
        assertEquals(100.0 / 110.0, views.limitFraction(), 1e-12);
        Views worse = measured(us(140.0), us(150.0, 150.0, 150.0));
        assertEquals(0.0, worse.overlapEfficiency().getAsDouble(), "never negative");
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
        Samples noisy = us(100.0, 110.0, 120.0, 130.0);
        Views views = measured(noisy, us(110.0, 110.0, 110.0));
        assertTrue(views.overlapEfficiency().isEmpty(), "40 is under three times 15");
        Views single = measured(us(140.0), us(110.0));
        assertTrue(single.overlapEfficiency().isEmpty(), "one sample has no spread");
    }
}
