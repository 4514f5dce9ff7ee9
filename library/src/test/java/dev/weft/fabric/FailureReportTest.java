package dev.weft.fabric;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a rank tells of its report, and how another process reads it. */
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
                                    new FailureReport.Run(3, 0, 3, 1, 1),
                                    List.of(
                                            new FailureReport.Run(3, 0, 3, 0, 1),
                                            new FailureReport.Run(3, 1, 2, 8, 8)))),
                    List.of(
                            new FailureReport.Peer(0, FailureReport.State.DEAD, 20, 3000, -1),
                            new FailureReport.Peer(1, FailureReport.State.PRESENT, -1, -1, 250)));

    @Test
    void whatIsWrittenIsReadBack() {
        assertEquals(FULL, FailureReport.parse(FULL.text()));
        assertEquals(1, FULL.text().lines().count());
        FailureReport bare = FailureReport.of(0, List.of(), List.of());
        assertEquals(bare, FailureReport.parse(bare.text()));
    }

    @Test
    void controlCharactersDoNotTravel() {
        FailureReport odd =
                FailureReport.of(
                        1,
                        List.of(new FailureReport.Wait("t\n", "a\u001b[2J", 0, -1, -1, 1, 1)),
                        List.of());
        FailureReport.Wait read = FailureReport.parse(odd.text()).waits().getFirst();
        assertEquals("t ", read.thread());
        assertEquals("a [2J", read.what());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                ";",
                "report1",
                "report2;rank,0,w,1",
                "report1;rank,0,w",
                "report1;rank,-1,w,1",
                "report1;rank,0,w,1,2",
                "report1;rank,0,w,99999999999",
                "report1;rank,0,w,1;",
                "report1;rank,0,w,1;run,1,1,1,1,1",
                "report1;rank,0,w,1;latest,1,1,1,1,1",
                "report1;rank,0,w,1;peer,1,ASLEEP,1,1,1",
                "report1;rank,0,w,1;wait,%0A,b,1,1,1,1,1",
                "report1;rank,0,w,1;wait,%zz,b,1,1,1,1,1",
                "report1;rank,0,w,1;wait,a,b,1,1,1,1",
                "report1;rank,0,w,1;other,1"
            })
    void nonsenseIsRefusedInOneLine(String text) {
        assertRefused(text);
    }

    private static void assertRefused(String text) {
        IllegalArgumentException refusal =
                assertThrows(IllegalArgumentException.class, () -> FailureReport.parse(text));
        assertTrue(refusal.getMessage().startsWith("not a rank's report: '"));
        assertEquals(1, refusal.getMessage().lines().count());
    }

    /** Any text is either read, and then reads the same again, or refused. */
    @Test
    void damagedTextIsReadOrRefused() {
        long seed = 20_261_115;
        Random random = new Random(seed);
        String whole = FULL.text();
        int refused = 0;
        for (int i = 0; i < 5000; i++) {
            char[] damaged = whole.substring(0, random.nextInt(whole.length() + 1)).toCharArray();
            for (int d = random.nextInt(3); d > 0 && damaged.length > 0; d--) {
                damaged[random.nextInt(damaged.length)] = (char) random.nextInt(0x250);
            }
            String text = new String(damaged);
            try {
                FailureReport read = FailureReport.parse(text);
                assertEquals(
                        read, FailureReport.parse(read.text()), "seed " + seed + ", case " + i);
            } catch (IllegalArgumentException e) {
                refused++;
                assertTrue(e.getMessage().startsWith("not a rank's report"), e.getMessage());
            }
        }
        assertTrue(refused > 1000, refused + " refused");
    }

    @Test
    void longTextIsRefused() {
        assertRefused("report1;rank,0,w,1" + ";run,1,1,1,1,1".repeat(100_000));
    }

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
