package dev.weft.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

class ComparisonTest {

    private static ShownRun run(String name, double compute, Double... pipelined) {
        return new RecordMaker().label(name).views(compute, 400, 2500, pipelined).shown();
    }

    private static Comparison of(ShownRun... runs) {
        return Comparison.of(List.of(runs));
    }

    @Test
    void theFastestIsToldWithTheNoise() {
        ShownRun slow = run("a", 1500, 2000.0, 2000.0, 2000.0);
        ShownRun fast = run("b", 1500, 1500.0, 1600.0, 1700.0);
        Comparison compared = of(slow, fast);
        assertEquals("b is the fastest: 20.0% less time than a (noise 5.0%).", compared.sentence());
        assertEquals(List.of(), compared.warnings());
        ShownRun near = run("c", 1500, 1560.0, 1560.0, 1560.0);
        assertEquals(
                "c and b are equally fast within the noise (6.3%).", of(near, fast).sentence());
    }

    @Test
    void noneIsTheFastestWithoutABasis() {
        ShownRun one = run("a", 1500, 2000.0);
        assertEquals(
                "Too few rounds to tell which run is the fastest: expected 3 or more of each.",
                of(one, run("b", 1500, 1000.0, 1000.0, 1000.0)).sentence());
        assertTrue(
                of(one, new RecordMaker().ranks(2, 1).shown())
                        .sentence()
                        .startsWith("The runs computed different products"));
    }

    @Test
    void aMachineThatChangedIsToldOf() {
        ShownRun before = run("before", 1200, 1700.0, 1700.0, 1700.0);
        ShownRun after = run("after", 1500, 1800.0, 1800.0, 1800.0);
        String warning =
                "The product alone took 25.0% longer in after than in before (noise 0.0%): the"
                        + " machine or its load changed between the runs, so their times cannot be"
                        + " compared.";
        assertEquals(List.of(warning), of(before, after).warnings());
        assertEquals(List.of(warning), of(after, before).warnings(), "in any order");
        ShownRun gpu = new RecordMaker().device("cuda: x").views(100, 40, 150, 120.0).shown();
        assertEquals(List.of(), of(before, gpu).warnings(), "another device may be faster");
        ShownRun predicted = new RecordMaker().simulatedOn("x").views(100, 40, 150, 120.0).shown();
        assertEquals(List.of(), of(predicted, predicted).warnings());
    }
}
