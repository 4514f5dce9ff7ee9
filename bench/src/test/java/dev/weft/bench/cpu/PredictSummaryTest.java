package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.bench.cpu.PredictSummary.Prediction;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class PredictSummaryTest {

    private static Prediction off(double error) {
        return new Prediction(100 * (1 + error), 100, 0.5);
    }

    private static PredictSummary summary(int count, double error, Prediction... others) {
        List<Prediction> all = new ArrayList<>(Collections.nCopies(count, off(error)));
        all.addAll(List.of(others));
        return new PredictSummary(all);
    }

    @Test
    void errorsHaveASign() {
        assertEquals(0.2, new Prediction(120, 100, 1).error(), 1e-12);
        assertEquals(-0.2, new Prediction(80, 100, 1).error(), 1e-12);
    }

    @Test
    void theirSizeIsWhatCounts() {
        PredictSummary summary = summary(12, -0.09, off(0.24));
        assertEquals(0.09, summary.medianError(), 1e-12);
        assertEquals(0.24, summary.worstError(), 1e-12);
        assertEquals(0.91, summary.ratio(), 1e-12);
        assertTrue(summary.passes());
        assertEquals(13, summary.figures().get("counted"));
        assertEquals(1, summary.figures().get("pass"));
    }

    @Test
    void failsByTheMedian() {
        assertFalse(summary(12, 0.11).passes());
    }

    @Test
    void failsByTheWorst() {
        assertFalse(summary(12, 0.01, off(-0.26)).passes());
    }

    @Test
    void failsWithTooFewRuns() {
        assertTrue(summary(12, 0.01).passes());
        assertFalse(summary(11, 0.01).passes());
    }

    @Test
    void runsWithLittleToGatherDoNotCount() {
        Prediction little = new Prediction(300, 100, 0.29);
        assertFalse(little.counts());
        PredictSummary summary = summary(12, 0.01, little);
        assertEquals(12, summary.figures().get("counted"));
        assertEquals(0.01, summary.worstError(), 1e-12);
        assertTrue(new PredictSummary(List.of(little)).isEmpty());
    }
}
