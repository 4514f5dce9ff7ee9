package dev.weft.search;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.plan.Algorithm;
import dev.weft.plan.cut.Cut;
import java.util.List;
import org.junit.jupiter.api.Test;

class AutoTrialTest {

    private static int fastest(double direct, double ring, double sequential) {
        List<Candidate> candidates =
                List.of(
                        priced(Algorithm.DIRECT, 1),
                        priced(Algorithm.RING, 2),
                        priced(Algorithm.SEQUENTIAL, 3));
        return AutoTrial.fastest(candidates, new double[] {direct, ring, sequential});
    }

    private static Candidate priced(Algorithm algorithm, double ns) {
        return Candidate.of(algorithm, Cut.AUTOMATIC, 64, 1).priced(ns);
    }

    @Test
    void theFastestIsTaken() {
        assertEquals(0, fastest(100, 200, 300));
        assertEquals(1, fastest(200, 100, 300));
        assertEquals(2, fastest(200, 300, 100));
    }

    @Test
    void whatATrialCannotTellApartGoesByThePrice() {
        assertEquals(0, fastest(101, 100, 300));
        assertEquals(1, fastest(103, 100, 300));
    }

    @Test
    void sequentialIsTakenAsSoonAsItIsFaster() {
        assertEquals(2, fastest(101, 300, 100));
        assertEquals(0, fastest(100, 300, 100));
        assertEquals(1, fastest(101, 99.5, 100));
    }
}
