package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.bench.measure.BenchRow;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** From a run record with made-up numbers to rows. */
class OverlapRowsTest {

    private static final double EXACT = 1e-9;

    @TempDir Path folder;

    /** Compute 100 us, transfers 60 us, sequential 20 + 110 us; pipelined as given. */
    private RunFigures run(int pipelinedUs) throws IOException {
        String view = "{\"medianUs\": %d, \"spreadUs\": 2.5, \"samplesUs\": [1, 2.0, 3]}";
        String record =
                "{\"schema\": \"weft.run/1\", \"problem\": {\"m\": 8, \"data\": \"normal\"},"
                        + " \"views\": {\"computeOnly\": "
                        + view.formatted(100)
                        + ", \"commOnly\": "
                        + view.formatted(60)
                        + ", \"sequential\": {\"medianUs\": 130, \"spreadUs\": 1,"
                        + " \"samplesUs\": [130], \"comm\": "
                        + view.formatted(20)
                        + ", \"compute\": "
                        + view.formatted(110)
                        + "}, \"pipelined\": "
                        + view.formatted(pipelinedUs)
                        + "}, \"overlapEfficiency\": null, \"verification\": {\"passed\": true},"
                        + " \"ranks\": [{\"rank\": 0, \"chunkRows\": 32, \"tracks\": [{\"name\":"
                        + " \"caller\", \"spans\": [{\"rows\": 7}]}]},"
                        + " {\"rank\": 1, \"chunkRows\": 16}]}";
        Path file = folder.resolve("record.json");
        Files.writeString(file, record);
        return RunFigures.read(file);
    }

    @Test
    void readsMediansSpreadsAndChunks() throws IOException {
        RunFigures run = run(104);
        assertEquals(100_000, run.medianNs("computeOnly"), EXACT);
        assertEquals(20_000, run.medianNs("sequential/comm"), EXACT);
        assertEquals(2_500, run.spreadNs("pipelined"), EXACT);
        assertEquals(32, run.chunkRows());
        assertTrue(
                run.numbers().keySet().stream()
                        .noneMatch(at -> at.contains("samplesUs") || at.contains("tracks")),
                run.numbers().toString());
    }

    @Test
    void aMissingNumberIsNamed() throws IOException {
        RunFigures run = run(104);
        Exception missing =
                assertThrows(IllegalStateException.class, () -> run.medianNs("simulated"));
        assertEquals(
                "the run record has no number at /views/simulated/medianUs", missing.getMessage());
    }

    @Test
    void directIsJudgedByTheLongerOfProductAndTransfers() throws IOException {
        BenchRow near = OverlapRows.direct("direct", run(104));
        assertEquals("overlap", near.item());
        assertEquals("sequential", near.peer());
        assertEquals(130.0 / 104, near.ratio(), EXACT);
        assertEquals(20.0 / 110, near.figures().get("gatherOverProduct"), EXACT);
        assertEquals(100.0 / 104, near.figures().get("limit"), EXACT);
        assertEquals(20_000, near.figures().get("sequentialGatherNs"), EXACT);
        assertEquals(1, near.figures().get("pass"));
        assertEquals(0, OverlapRows.direct("direct", run(106)).figures().get("pass"));
        assertFalse(near.figures().containsKey("copyLimit"));
    }

    @Test
    void onlyTheBestCopyingAlgorithmIsJudged() throws IOException {
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
    void aFreeGatherIsComparedWithTheProductAlone() throws IOException {
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
