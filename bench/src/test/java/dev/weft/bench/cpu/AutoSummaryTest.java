package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Algorithm;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class AutoSummaryTest {

    private static final AutoTimes RING_BEST = AutoTimesTest.times(100, 100, 150, 150, 0);
    private static final AutoTimes SEQUENTIAL_BEST = AutoTimesTest.times(100, 150, 100, 100, 0);
    private static final AutoTimes FAR_FROM_BEST = AutoTimesTest.times(120, 100, 150, 150, 0);
    private static final AutoTimes SLOWER = AutoTimesTest.times(103, 150, 100, 100, 0);

    private static AutoSummary summary(int ringBest, int sequentialBest, int far, int slower) {
        List<AutoTimes> times = new ArrayList<>(Collections.nCopies(ringBest, RING_BEST));
        times.addAll(Collections.nCopies(sequentialBest, SEQUENTIAL_BEST));
        times.addAll(Collections.nCopies(far, FAR_FROM_BEST));
        times.addAll(Collections.nCopies(slower, SLOWER));
        return new AutoSummary(times);
    }

    @Test
    void passesWithEveryConditionJustMet() {
        AutoSummary summary = summary(30, 24, 6, 0);
        assertEquals(0.9, summary.nearBest(), 1e-12);
        assertEquals(0.6, summary.bestShare(Algorithm.RING), 1e-12);
        assertEquals(0.4, summary.bestShare(Algorithm.SEQUENTIAL), 1e-12);
        assertEquals(0, summary.slowerThanSequential());
        assertTrue(summary.passes());
        assertEquals(1, summary.figures().get("pass"));
    }

    @Test
    void failsWithTooFewProblems() {
        assertFalse(summary(30, 29, 0, 0).passes());
    }

    @Test
    void failsWhereTooManyAreFarFromTheBest() {
        assertFalse(summary(29, 24, 7, 0).passes());
    }

    @Test
    void failsWhereOneIsSlowerThanSequential() {
        AutoSummary summary = summary(30, 29, 0, 1);
        assertEquals(1, summary.slowerThanSequential());
        assertEquals(1, summary.nearBest(), 1e-12);
        assertFalse(summary.passes());
    }

    @Test
    void failsWhereOneAlgorithmIsBestTooOften() {
        AutoSummary summary = summary(37, 23, 0, 0);
        assertFalse(summary.passes());
        assertEquals(37.0 / 60, summary.figures().get("largestBestShare"), 1e-12);
        assertEquals(37.0 / 60, summary.figures().get("ringBestShare"), 1e-12);
        assertEquals(0, summary.figures().get("meshPushBestShare"));
    }

    @Test
    void theSpeedIsAMedian() {
        assertEquals(100.0 / 120, summary(1, 0, 2, 0).speed(), 1e-12);
    }

    @Test
    void ofNothingIsRefused() {
        assertThrows(IllegalArgumentException.class, () -> new AutoSummary(List.of()));
    }
}
