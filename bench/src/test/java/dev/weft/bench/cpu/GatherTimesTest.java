package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.peers.Mpi;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class GatherTimesTest {

    private static final GatherTimes TIMES =
            new GatherTimes(
                    GatherSize.KIB_16,
                    700,
                    41,
                    Map.of(
                            GatherTimes.COLUMNS, new GatherTimes.Side(4300, 12.5, 1.07),
                            GatherTimes.ROWS, new GatherTimes.Side(3100, 7, 1.49),
                            GatherTimes.MPI, new GatherTimes.Side(4600, 700, 1)));

    @Test
    void linesAreReadAsTheyWereWrittenAmongOthers() {
        assertEquals(
                List.of(TIMES, TIMES),
                GatherTimes.parse(List.of(TIMES.line(), "mpirun says something", TIMES.line())));
    }

    @Test
    void figuresHaveWeftBesideItsPeer() {
        Map<String, Double> figures = TIMES.figures(GatherTimes.ROWS);
        assertEquals(3100, figures.get("weftMedianNs"));
        assertEquals(4600, figures.get("peerMedianNs"));
        assertEquals(16384, figures.get("bytesPerRank"));
    }

    /** Only at the source's first shape on eight ranks: no slower than MPI. */
    @Test
    void theSourcesShapeMustKeepUpWithMpi() {
        GatherTimes source = new GatherTimes(GatherSize.KIB_128, 700, 41, TIMES.sides());
        BenchRow fast = GatherCase.row(Mpi.Implementation.OPEN_MPI, 8, source, GatherTimes.COLUMNS);
        assertEquals(1.07, fast.ratio());
        assertEquals(1, fast.figures().get("needed"));
        assertEquals(1, fast.figures().get("pass"));
        GatherTimes late =
                new GatherTimes(
                        GatherSize.KIB_128,
                        700,
                        41,
                        Map.of(
                                GatherTimes.COLUMNS, new GatherTimes.Side(4610, 12.5, 0.998),
                                GatherTimes.MPI, new GatherTimes.Side(4600, 700, 1)));
        BenchRow slow = GatherCase.row(Mpi.Implementation.OPEN_MPI, 8, late, GatherTimes.COLUMNS);
        assertEquals(0, slow.figures().get("pass"));
        for (BenchRow other :
                List.of(
                        GatherCase.row(Mpi.Implementation.OPEN_MPI, 4, source, GatherTimes.COLUMNS),
                        GatherCase.row(
                                Mpi.Implementation.OPEN_MPI, 8, TIMES, GatherTimes.COLUMNS))) {
            assertFalse(other.figures().containsKey("needed"), other.name());
        }
    }

    @Test
    void theFirstShapeOfTheSourcesTestsIsMeasured() {
        assertEquals("128 KiB each, [128, 512] bf16", GatherSize.KIB_128.describe());
        assertEquals(1 << 20, GatherSize.MIB_1.bytes());
        assertEquals(1 << 10, GatherSize.KIB_1.bytes());
    }
}
