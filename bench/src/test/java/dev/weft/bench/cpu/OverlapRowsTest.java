package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.bench.measure.BenchRow;
import dev.weft.report.Samples;
import dev.weft.report.Views;
import java.util.List;
import org.junit.jupiter.api.Test;

/** From views with made-up numbers to rows. */
class OverlapRowsTest {

    private static final double EXACT = 1e-9;

    /** Compute 100 us, transfers 60 us, sequential 20 + 110 us; pipelined as given. */
    private static Views run(double pipelinedUs) {
        return new Views(us(100), us(60), us(130), us(20), us(110), us(pipelinedUs), false, null);
    }

    private static Samples us(double median) {
        return new Samples(List.of(median - 5, median, median + 5));
    }

    @Test
    void directIsJudgedByTheLongerOfProductAndTransfers() {
        BenchRow near = OverlapRows.direct("direct", run(104));
        assertEquals("overlap", near.item());
        assertEquals("sequential", near.peer());
        assertEquals(130.0 / 104, near.ratio(), EXACT);
        assertEquals(20.0 / 110, near.figures().get("gatherOverProduct"), EXACT);
        assertEquals(100.0 / 104, near.figures().get("limit"), EXACT);
        assertEquals(20_000, near.figures().get("sequentialGatherNs"), EXACT);
        assertEquals(5_000, near.figures().get("pipelinedSpreadNs"), EXACT);
        assertEquals(1, near.figures().get("pass"));
        assertEquals(0, OverlapRows.direct("direct", run(106)).figures().get("pass"));
        assertFalse(near.figures().containsKey("copyLimit"));
    }

    @Test
    void onlyTheBestCopyingAlgorithmIsJudged() {
        BenchRow good = OverlapRows.copying("ring", run(112), 2, 20_000);
        BenchRow bad = OverlapRows.copying("mesh-push", run(125), 2, 20_000);
        assertEquals(110.0 / 112, good.figures().get("copyLimit"), EXACT);
        assertEquals(20_000, good.figures().get("copyCoreNs"), EXACT);
        List<BenchRow> rows = OverlapRows.judgeBest(List.of(bad, good));
        assertEquals(List.of("mesh-push", "ring"), rows.stream().map(BenchRow::name).toList());
        assertFalse(rows.get(0).figures().containsKey("pass"));
        assertEquals(1, rows.get(1).figures().get("pass"));
        assertEquals(0, OverlapRows.judgeBest(List.of(bad)).getFirst().figures().get("pass"));
    }

    @Test
    void aFreeGatherIsComparedWithTheProductAlone() {
        BenchRow free = OverlapRows.freeGather("free gather", run(103));
        assertEquals("compute-only", free.peer());
        assertEquals(100.0 / 103, free.ratio(), EXACT);
        assertEquals(1, free.figures().get("pass"));
        assertEquals(0, OverlapRows.freeGather("free gather", run(104)).figures().get("pass"));
    }

    @Test
    void columnsFollowTheLineThroughTwoProducts() {
        // 100 ns for reading A and 10 ns per column.
        OverlapCase.Sizes sizes = new OverlapCase.Sizes(420, 260, 1380);
        assertEquals(32, sizes.columns(1));
        assertEquals(64, sizes.columns(0.5));
        assertEquals(384, sizes.columns(0.1));
    }

    @Test
    void columnsStayWithinBoundsWhateverTheNoise() {
        assertEquals(8, new OverlapCase.Sizes(1, 260, 1380).columns(1));
        assertEquals(4096, new OverlapCase.Sizes(1e9, 260, 1380).columns(0.1));
        long tilted = new OverlapCase.Sizes(420, 1400, 1380).columns(0.5);
        assertTrue(tilted >= 8 && tilted <= 4096, "columns " + tilted);
    }
}
