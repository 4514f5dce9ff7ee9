package dev.weft.cli.run;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.op.Candidate;
import dev.weft.op.Timeline;
import dev.weft.plan.Algorithm;
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
    private static final int NAMES_BYTES = 3 * (2 + 1);

    private static final int FIRST_COUNT_AT = NAMES_BYTES + 4 + 4 + 8 + 4;

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
                2,
                ns,
                ns,
                ns,
                ns,
                lastView,
                0.5,
                true,
                true,
                false,
                List.of(new Candidate(Algorithm.RING, 4, 1e3, 2e3, true)),
                new Timeline(0, 100, 50, List.of(new Timeline.Track("lane 0", List.of(span)))));
    }

    private static void assertRefused(byte[] bytes, String part) {
        IOException e = assertThrows(IOException.class, () -> RankReport.of(bytes));
        assertEquals(1, e.getMessage().lines().count(), e.getMessage());
        assertTrue(e.getMessage().contains(part), e.getMessage());
    }

    @Test
    void whatIsWrittenIsRead() throws IOException {
        Path file = folder.resolve("report");
        report(7, 8).write(file);
        RankReport read = RankReport.read(file);
        assertArrayEquals(new long[] {7, 8}, read.pipelinedNs());
        assertEquals(report(7, 8).timeline(), read.timeline());
        assertEquals(report(7, 8).candidates(), read.candidates());
        try (Stream<Path> files = Files.list(folder)) {
            assertEquals(List.of(file), files.toList());
        }
    }

    @Test
    void aReportThatEndsEarlyIsRefusedWhereverItEnds() throws IOException {
        byte[] whole = report(7, 8).toBytes();
        for (int length = 0; length < whole.length; length++) {
            assertRefused(Arrays.copyOf(whole, length), "no report of a rank");
        }
        assertRefused(Arrays.copyOf(whole, whole.length + 1), "1 bytes follow its end");
    }

    @Test
    void countsThatTheBytesCannotHoldAreRefused() throws IOException {
        for (int count : new int[] {-1, Integer.MIN_VALUE, Integer.MAX_VALUE, 1 << 20, 1000}) {
            byte[] bytes = report(7, 8).toBytes();
            ByteBuffer.wrap(bytes).putInt(FIRST_COUNT_AT, count);
            assertRefused(bytes, "a count of " + count + " where ");
        }
    }

    @Test
    void viewsOfDifferentRoundsAreRefused() throws IOException {
        assertRefused(report(7, 8, 9).toBytes(), "3 rounds of one view, 2 of another");
    }

    @Test
    void unknownKindsAreRefused() throws IOException {
        byte[] bytes = report(7, 8).toBytes();
        int span = bytes.length - (1 + 4 * 4 + 5 * 8);
        bytes[span] = (byte) 200;
        assertRefused(bytes, "200: expected 0 to 3");
    }

    /** Who shows what ranks do passes over what cannot be read. */
    @Test
    void aDamagedRoundIsNotShown() throws IOException {
        Files.write(folder.resolve("live-0"), new byte[] {0, 1, 'a', 0, 9});
        report(7, 8).write(folder.resolve("live-1"));
        int[] shown = {-1};
        LiveFiles.show(folder, 2, (rank, soFar) -> shown[0] = rank);
        assertEquals(1, shown[0]);
    }
}
