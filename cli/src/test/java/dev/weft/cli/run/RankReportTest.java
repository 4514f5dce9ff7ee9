package dev.weft.cli.run;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.message.RecordBytes;
import dev.weft.op.Timeline;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RankReportTest {

    /** Three names of one letter, then what is counted. */
    private static final int NAMES_BYTES = 3 * (4 + 1);

    /** Behind the sign that there are times. */
    private static final int FIRST_COUNT_AT = NAMES_BYTES + 4 + 4 + 8 + 1;

    @TempDir private Path folder;

    private static RankReport report(long... lastView) {
        Timeline.Span span =
                new Timeline.Span(Timeline.Kind.TRANSFER, 1, 1, 0, 2, 0, 8, 128, 10, 20);
        long[] ns = {5, 6};
        return new RankReport(
                "a",
                "d",
                "e",
                1,
                1,
                8,
                new ViewTimes(ns, ns, ns, ns, ns, new long[0], lastView),
                true,
                true,
                false,
                List.of(new Explanation.Tried("ring", 4, 1e3, 2e3, true)),
                List.of("a plan"),
                new Timeline(0, 100, 50, List.of(new Timeline.Track("lane 0", List.of(span)))));
    }

    private static void assertRefused(byte[] bytes, String part) {
        IOException e =
                assertThrows(IOException.class, () -> RecordBytes.read(RankReport.class, bytes));
        assertEquals(1, e.getMessage().lines().count(), e.getMessage());
        assertTrue(e.getMessage().contains(part), e.getMessage());
    }

    @Test
    void whatIsWrittenIsRead() throws IOException {
        Path file = folder.resolve("report");
        RecordBytes.write(report(7, 8), file);
        RankReport read = RecordBytes.read(RankReport.class, file, Integer.MAX_VALUE);
        assertArrayEquals(new long[] {7, 8}, read.times().progressCpu());
        assertEquals(report(7, 8).timeline(), read.timeline());
        assertEquals(report(7, 8).candidates(), read.candidates());
        try (Stream<Path> files = Files.list(folder)) {
            assertEquals(List.of(file), files.toList());
        }
    }

    @Test
    void aReportThatEndsEarlyIsRefusedWhereverItEnds() throws IOException {
        byte[] whole = RecordBytes.of(report(7, 8));
        for (int length = 0; length < whole.length; length++) {
            assertRefused(Arrays.copyOf(whole, length), "no RankReport");
        }
        assertRefused(Arrays.copyOf(whole, whole.length + 1), "1 bytes follow its end");
    }

    @Test
    void countsThatTheBytesCannotHoldAreRefused() throws IOException {
        for (int count : new int[] {-1, Integer.MIN_VALUE, Integer.MAX_VALUE, 1 << 20, 1000}) {
            byte[] bytes = RecordBytes.of(report(7, 8));
            ByteBuffer.wrap(bytes).putInt(FIRST_COUNT_AT, count);
            assertRefused(bytes, "a count of " + count + " where ");
        }
    }

    @Test
    void viewsOfDifferentRoundsAreRefused() {
        IllegalArgumentException e =
                assertThrows(IllegalArgumentException.class, () -> report(7, 8, 9));
        assertEquals("3 rounds of one view, 2 of another", e.getMessage());
    }

    @Test
    void unknownKindsAreRefused() throws IOException {
        byte[] bytes = RecordBytes.of(report(7, 8));
        int span = bytes.length - (1 + 4 * 4 + 5 * 8 + 1);
        bytes[span] = (byte) 200;
        assertRefused(bytes, "200: expected 0 to 3");
    }

    /** Who shows what ranks do passes over what cannot be read. */
    @Test
    void aDamagedRoundIsNotShown() throws IOException {
        Files.write(folder.resolve("live-0"), new byte[] {0, 1, 'a', 0, 9});
        RecordBytes.write(report(7, 8), folder.resolve("live-1"));
        assertTrue(RankReport.LIVE.take(folder, 0).isEmpty());
        assertTrue(RankReport.LIVE.take(folder, 1).isPresent());
    }
}
