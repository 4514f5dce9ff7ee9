package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;

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

    @Test
    void theFirstShapeOfTheSourcesTestsIsMeasured() {
        assertEquals("128 KiB each, [128, 512] bf16", GatherSize.KIB_128.describe());
        assertEquals(1 << 20, GatherSize.MIB_1.bytes());
        assertEquals(1 << 10, GatherSize.KIB_1.bytes());
    }
}
