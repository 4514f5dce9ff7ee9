package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.bench.cpu.AutoTimes.Side;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class AutoTimesTest {

    private static final int ROUNDS = 100;

    /** Nanoseconds of auto, ring, sequential and sequential again, all with one spread. */
    static AutoTimes times(double auto, double ring, double first, double second, double spread) {
        Map<String, Side> sides = new LinkedHashMap<>();
        sides.put("auto", new Side(auto, spread));
        sides.put("ring", new Side(ring, spread));
        sides.put("sequential", new Side(first, spread));
        sides.put(AutoTimes.SEQUENTIAL_AGAIN, new Side(second, spread));
        return new AutoTimes(7, "ring/16", ROUNDS, sides);
    }

    @Test
    void theBestIsAnAlgorithmAndNotAuto() {
        AutoTimes times = times(80, 90, 100, 70, 0);
        assertEquals("ring", times.best());
        assertEquals(80.0 / 90, times.overBest(), 1e-12);
        assertEquals(0.8, times.overSequential(), 1e-12);
        assertEquals("sequential", times(100, 110, 100, 100, 0).best());
    }

    /** Where their memory lies makes two operators with one plan differ; neither is the better. */
    @Test
    void anAlgorithmWithTheSamePlanIsTheChoiceItself() {
        Map<String, Side> sides = new LinkedHashMap<>();
        sides.put("auto", new Side(110, 0));
        sides.put("ring", new Side(100, 0));
        sides.put("mesh-push", new Side(102, 0));
        sides.put("sequential", new Side(210, 0));
        AutoTimes same = new AutoTimes(7, "ring/64", ROUNDS, sides);
        assertEquals(105, same.choiceNs());
        assertEquals("mesh-push", same.best());
        assertEquals(105.0 / 102, same.overBest(), 1e-12);
        assertEquals(110.0 / 210, same.overSequential(), 1e-12);
        AutoTimes other = new AutoTimes(7, "ring/16", ROUNDS, sides);
        assertEquals(110, other.choiceNs());
        assertEquals("ring", other.best());
    }

    @Test
    void nearTheBestIsWithinFivePercent() {
        assertTrue(times(104.9, 100, 200, 200, 0).isNearBest());
        assertFalse(times(105.1, 100, 200, 200, 0).isNearBest());
    }

    @Test
    void noiseIsWhatTheTwoSequentialOperatorsDifferBy() {
        assertEquals(0.04, times(100, 100, 100, 104, 0).noise(), 1e-12);
        assertEquals(0.04, times(100, 100, 100, 96, 0).noise(), 1e-12);
    }

    @Test
    void noiseIsAtLeastTwoStandardErrors() {
        double expected = 2 * 0.93 * Math.sqrt(2) * 10 / Math.sqrt(ROUNDS) / 100;
        assertEquals(expected, times(100, 100, 100, 100, 10).noise(), 1e-12);
    }

    @Test
    void slowerThanSequentialOnlyBeyondTheNoise() {
        assertFalse(times(103.9, 200, 100, 104, 0).isSlowerThanSequential());
        assertTrue(times(104.1, 200, 100, 104, 0).isSlowerThanSequential());
    }

    @Test
    void passesNearTheBestAndNoSlowerThanSequential() {
        assertEquals(1, times(100, 100, 120, 120, 0).figures().get("pass"));
        assertEquals(0, times(110, 100, 120, 120, 0).figures().get("pass"));
        assertEquals(0, times(104, 120, 100, 100, 0).figures().get("pass"));
        assertEquals(100, times(110, 100, 120, 120, 0).figures().get("ringNs"));
        assertTrue(times(1, 1, 1, 1, 0).figures().containsKey("sequentialAgainSpreadNs"));
    }

    @Test
    void travelsAsOneLineAmongOthers() {
        AutoTimes times = times(100.25, 1e-3, 1e12, 1.0 / 3, 0.1);
        assertEquals(1, times.line().lines().count());
        List<String> lines = List.of("WARNING: something else", times.line(), "");
        assertEquals(List.of(times), AutoTimes.parse(lines));
    }

    @Test
    void namesBecomeFigures() {
        assertEquals("bidirectionalRing", AutoTimes.camelCase("bidirectional-ring"));
        assertEquals("direct", AutoTimes.camelCase("direct"));
    }
}
