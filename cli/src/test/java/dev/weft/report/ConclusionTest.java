package dev.weft.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class ConclusionTest {

    /** Compute, comm and sequential alone, then the pipelined rounds. */
    private static Conclusion of(double compute, double comm, double all, Double... pipelined) {
        return Conclusion.of(new RecordMaker().views(compute, comm, all, pipelined).record());
    }

    @Test
    void whatOverlapSavedIsToldWithItsNoise() {
        Conclusion saved = of(1000, 1000, 2000, 1000.0, 1100.0, 1200.0);
        assertEquals(0.45, saved.saved(), 1e-12);
        // Of three rounds the noise is half the range: 100 of 2000.
        assertEquals(0.05, saved.noise(), 1e-12);
        assertEquals(
                "Overlap saved 45.0% (+-5.0%): 1.82x as fast as gathering first.",
                saved.sentence());
        String sums =
                Conclusion.of(
                                new RecordMaker()
                                        .sums("by-rank")
                                        .views(1000, 1000, 2000, 1000.0, 1000.0, 1000.0)
                                        .record())
                        .sentence();
        assertEquals("Overlap saved 50.0% (+-0.0%): 2.00x as fast as multiplying first.", sums);
    }

    @Test
    void whatOverlapCostIsToldToo() {
        assertEquals(
                "Overlap cost 10.0% (+-0.0%): 0.91x as fast as gathering first.",
                of(1000, 1000, 2000, 2200.0, 2200.0, 2200.0).sentence());
    }

    @Test
    void noiseHasAReasonAndANextStep() {
        String little = of(1990, 10, 2000, 1900.0, 2000.0, 2100.0).sentence();
        assertTrue(little.startsWith("Within the noise (+-"), little);
        assertTrue(little.contains("the gather takes 0.5% of the product's time"), little);
        assertTrue(little.contains("Try weft demo"), little);
        // Faster than the gather's part explains: nobody can hide more than there is.
        String lucky = of(1990, 10, 2000, 1940.0, 1950.0, 1960.0).sentence();
        assertTrue(lucky.startsWith("Within the noise (+-"), lucky);
        String slow = of(10, 1990, 2000, 1900.0, 2000.0, 2100.0).sentence();
        assertTrue(slow.contains("the product takes 0.5% of the gather's time"), slow);
        String busy = of(1000, 1000, 2000, 1000.0, 2000.0, 3000.0).sentence();
        assertTrue(busy.contains("100% of the product's time, but times vary"), busy);
        String useless = of(1000, 1000, 2000, 1990.0, 2000.0, 2010.0).sentence();
        assertTrue(useless.contains("but overlap hides next to nothing of it"), useless);
    }

    @Test
    void tooFewRoundsAndASingleRankAreToldAsSuch() {
        Conclusion few = of(1000, 1000, 2000, 1000.0, 1100.0);
        assertTrue(Double.isNaN(few.noise()));
        assertEquals(
                "Too few rounds (2) for a verdict: expected --iterations 3 or more.",
                few.sentence());
        assertTrue(
                Conclusion.of(new RecordMaker().ranks(1, 1).record())
                        .sentence()
                        .startsWith("One rank: nothing travels"));
    }

    @Test
    void predictedTimesHaveNoNoise() {
        RecordMaker simulated = new RecordMaker().simulatedOn("x");
        assertEquals(
                "Overlap would save 50.0%: 2.00x as fast as gathering first (predicted).",
                Conclusion.of(simulated.views(1000, 1000, 2000, 1000.0).record()).sentence());
        assertEquals(
                "Overlap would cost 5.0%: 0.95x as fast as gathering first (predicted).",
                Conclusion.of(simulated.views(1000, 1000, 2000, 2100.0).record()).sentence());
    }
}
