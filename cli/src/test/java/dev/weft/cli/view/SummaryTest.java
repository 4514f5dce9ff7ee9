package dev.weft.cli.view;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.console.Console;
import dev.weft.report.RecordMaker;
import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;

class SummaryTest {

    private static String printed(RecordMaker maker) {
        StringWriter text = new StringWriter();
        Summary summary = new Summary(new Console(new PrintWriter(text), false));
        summary.print(maker.record());
        summary.conclusion(maker.record());
        return text.toString();
    }

    private static void assertPrints(RecordMaker maker, String... parts) {
        String printed = printed(maker);
        for (String part : parts) {
            assertTrue(printed.contains(part), part + " in " + printed);
        }
    }

    @Test
    void allFiguresComeFromTheMediansThatArePrinted() {
        assertPrints(
                new RecordMaker().views(1500, 400, 2000, 1400.0, 1600.0, 1600.0),
                "Sequential:   2.000 ms (mean 2.000, spread 0.000)  (gather 0.500 ms + product 1.500 ms)",
                "Pipelined:    1.600 ms",
                "Speedup:      1.25x (+-0.08) over sequential",
                "Overlap eff:  80.0% of the smaller of gather and product hidden",
                "Of the limit: 93.8% of max(compute-only, comm-only) / pipelined\n",
                "Overlap saved 20.0% (+-5.0%): 1.25x as fast as gathering first.");
    }

    @Test
    void aLimitThatNothingCanPassIsNotPassed() {
        assertPrints(
                new RecordMaker().views(1700, 400, 2100, 1650.0, 1650.0, 1650.0),
                "Of the limit: 100.0% of max(compute-only, comm-only) / pipelined (103.0% measured:"
                        + " noise)");
        assertPrints(
                new RecordMaker().views(4000, 400, 4100, 1000.0, 1000.0, 1000.0),
                "(400.0% measured: the machine was busy or early rounds were still warming up)");
        assertPrints(
                new RecordMaker().simulatedOn("x").views(400, 1700, 2100, 1650.0),
                "Of the limit: 100.0% of max(compute-only, comm-only) / pipelined (the transfers"
                        + " alone would take longer, as they all start at once)");
    }

    @Test
    void aSequentialCallIsNotComparedWithItself() {
        String printed =
                printed(
                        new RecordMaker()
                                .algorithm("sequential", "auto")
                                .views(1500, 400, 2100, 707.0, 707.0, 707.0));
        assertTrue(printed.contains("x: the call itself is sequential, nothing overlaps"), printed);
        assertTrue(
                printed.contains(
                        "Nothing was overlapped: the call itself is sequential, which auto found to"
                                + " be the fastest."),
                printed);
        assertFalse(printed.contains("over sequential"), printed);
    }

    @Test
    void twoRoundsGiveNoVerdict() {
        assertPrints(
                new RecordMaker().views(1500, 400, 2100, 1700.0, 1700.0),
                "Speedup:      1.24x over sequential (too few rounds for a verdict)",
                "Overlap eff:  not measurable (too few rounds)",
                "Too few rounds (2) for a verdict: expected --iterations 3 or more.");
    }
}
