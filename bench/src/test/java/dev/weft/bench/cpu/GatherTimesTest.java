package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.peers.Mpi;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class GatherTimesTest {

    private static final GatherTimes.Side COLUMNS = new GatherTimes.Side(4300, 12.5, 1.07);
    private static final GatherTimes.Side ROWS = new GatherTimes.Side(3100, 7, 1.49);
    private static final GatherTimes.Side MPI = new GatherTimes.Side(4600, 700, 1);
    private static final GatherTimes TIMES = of(GatherTimes.SIZES.get(1), COLUMNS);

    private static GatherTimes of(GatherTimes.Size size, GatherTimes.Side columns) {
        return new GatherTimes(size, 700, 41, columns, ROWS, MPI);
    }

    @Test
    void linesAreReadAsTheyWereWrittenAmongOthers() {
        List<String> lines = new ArrayList<>(TIMES.lines());
        lines.add("mpirun says something");
        lines.addAll(TIMES.lines());
        assertEquals(List.of(TIMES, TIMES), GatherTimes.read(lines));
    }

    @Test
    void figuresHaveWeftBesideItsPeer() {
        Map<String, Double> figures = TIMES.figures(ROWS);
        assertEquals(3100, figures.get("weftMedianNs"));
        assertEquals(4600, figures.get("peerMedianNs"));
        assertEquals(16384, figures.get("bytesPerRank"));
    }

    /** Only at the source's first shape on eight ranks: no slower than MPI. */
    @Test
    void theSourcesShapeMustKeepUpWithMpi() {
        GatherTimes source = of(GatherTimes.SOURCE, COLUMNS);
        BenchRow fast = row(8, source);
        assertEquals(1.07, fast.ratio());
        assertEquals(1, fast.figures().get("needed"));
        assertEquals(1, fast.figures().get("pass"));
        GatherTimes late = of(GatherTimes.SOURCE, new GatherTimes.Side(4610, 12.5, 0.998));
        assertEquals(0, row(8, late).figures().get("pass"));
        for (BenchRow other : List.of(row(4, source), row(8, TIMES))) {
            assertFalse(other.figures().containsKey("needed"), other.name());
        }
    }

    private static BenchRow row(int ranks, GatherTimes times) {
        return GatherCase.row(Mpi.Implementation.OPEN_MPI, ranks, times, true);
    }

    @Test
    void theFirstShapeOfTheSourcesTestsIsMeasured() {
        assertEquals("128 KiB each, [128, 512] bf16", GatherTimes.SOURCE.describe());
        assertEquals(1 << 20, GatherTimes.SIZES.getLast().bytes());
        assertEquals(1 << 10, GatherTimes.SIZES.getFirst().bytes());
    }
}
