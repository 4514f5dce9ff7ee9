package dev.weft.cli.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.message.RecordBytes;
import dev.weft.trace.Timeline;
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

    /** Of the rounds. */
    private static final int FIRST_COUNT_AT = NAMES_BYTES + 4 + 4 + 8;

    @TempDir private Path folder;

    private static RankReport report() {
        Timeline.Span span =
                new Timeline.Span(Timeline.Kind.TRANSFER, 1, 1, 0, 2, 0, 8, 128, 10, 20);
        return new RankReport(
                "a",
                "d",
                "e",
                1,
                1,
                8,
                List.of(new RoundTimes(5, 5, 5, 5, 5, -1, 7), new RoundTimes(6, 6, 6, 6, 6, -1, 8)),
                true,
                true,
                false,
                List.of("a candidate"),
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
        RecordBytes.write(report(), file);
        RankReport read = RecordBytes.read(RankReport.class, file, Integer.MAX_VALUE);
        assertEquals(report().times(), read.times());
        assertEquals(report().timeline(), read.timeline());
        assertEquals(report().candidates(), read.candidates());
        try (Stream<Path> files = Files.list(folder)) {
            assertEquals(List.of(file), files.toList());
        }
    }

    @Test
    void aReportThatEndsEarlyIsRefusedWhereverItEnds() throws IOException {
        byte[] whole = RecordBytes.of(report());
        for (int length = 0; length < whole.length; length++) {
            assertRefused(Arrays.copyOf(whole, length), "no RankReport");
        }
        assertRefused(Arrays.copyOf(whole, whole.length + 1), "1 bytes follow its end");
    }

    @Test
    void countsThatTheBytesCannotHoldAreRefused() throws IOException {
        for (int count : new int[] {-1, Integer.MIN_VALUE, Integer.MAX_VALUE, 1 << 20, 1000}) {
            byte[] bytes = RecordBytes.of(report());
            ByteBuffer.wrap(bytes).putInt(FIRST_COUNT_AT, count);
            assertRefused(bytes, "a count of " + count + " where ");
        }
    }

    @Test
    void unknownKindsAreRefused() throws IOException {
        byte[] bytes = RecordBytes.of(report());
        int span = bytes.length - (1 + 4 * 4 + 5 * 8 + 1);
        bytes[span] = (byte) 200;
        assertRefused(bytes, "200: expected 0 to 3");
    }

    /** Who shows what ranks do passes over what cannot be read. */
    @Test
    void aDamagedRoundIsNotShown() throws IOException {
        Files.write(folder.resolve("live-0"), new byte[] {0, 1, 'a', 0, 9});
        RecordBytes.write(report(), folder.resolve("live-1"));
        assertTrue(RankReport.LIVE.take(folder, 0).isEmpty());
        assertTrue(RankReport.LIVE.take(folder, 1).isPresent());
    }
}
