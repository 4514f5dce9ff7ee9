package dev.weft.fabric;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What a report shows to people. */
class FailureReportTest {

    private static final FailureReport FULL =
            new FailureReport(
                    3,
                    "w-7",
                    21,
                    List.of(
                            new FailureReport.Wait("lane-0", "chunk", 1, 2, 4, 21, 3001),
                            new FailureReport.Wait("a; b,c %+ \u00e9", "x,y;z", 0, -1, -1, -7, 0)),
                    List.of(
                            new FailureReport.Received(0, 5, 5, 4, -1),
                            new FailureReport.Received(2, 1, 5, 3, 0)),
                    List.of(
                            new FailureReport.Sent("lane-0", 0, 6, null, List.of()),
                            new FailureReport.Sent(
                                    "lane-1",
                                    3,
                                    9,
                                    new FailureReport.Run("chunk", 3, 0, 3, 1, 1),
                                    List.of(
                                            new FailureReport.Run("chunk", 3, 0, 3, 0, 1),
                                            new FailureReport.Run("chunk", 3, 1, 2, 8, 8)))),
                    List.of(
                            new FailureReport.Peer(0, FailureReport.State.DEAD, 20, 3000, -1),
                            new FailureReport.Peer(1, FailureReport.State.PRESENT, -1, -1, 250)));

    @Test
    void theTableTellsAll() {
        List<String> lines = new ArrayList<>(FULL.table().lines().toList());
        assertEquals("rank 3, call 21 of operator w-7", lines.removeFirst());
        List<String> expected =
                List.of(
                        "waits for  lane-0",
                        "chunk 4 of rank 2 (number 21) from rank 1, for 3001 ms",
                        "x,y;z (number -7) from rank 0, for 0 ms",
                        "5 of 5 chunks, last 4",
                        "1 of 5 chunks, last 3, first missing 0",
                        "0 of 6 transfers",
                        "3 of 9 transfers, last chunk 1 of rank 3 to rank 0",
                        "dead, in call 20, no work for 3000 ms",
                        "present, nothing heard for 250 ms");
        String table = String.join("\n", lines);
        for (String text : expected) {
            assertTrue(table.contains(text), table);
        }
        assertEquals(8, lines.size());
        assertFalse(table.contains("null"));
    }
}
