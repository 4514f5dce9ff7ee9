package dev.weft.cli.view;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.console.Colours;
import dev.weft.cli.console.Console;
import dev.weft.report.CallSpans;
import dev.weft.report.RunRecord;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Pictures of calls whose cells are a tenth of a millisecond each: 20 cells, 2 ms. */
class TimelinePictureTest {

    private static final long CELL_NS = 100_000;
    private static final int WIDTH = 44;
    private static final Colours PLAIN = new Colours(false);

    private static Timeline.Span span(Kind kind, int source, double fromCell, double endCell) {
        return Timeline.Span.local(
                kind,
                source,
                source,
                0,
                1,
                Math.round(fromCell * CELL_NS),
                Math.round(endCell * CELL_NS));
    }

    private static Timeline.Track track(String name, Timeline.Span... spans) {
        return new Timeline.Track(name, List.of(spans));
    }

    private static RunRecord.Rank rank(int rank, int startCell, Timeline.Track... tracks) {
        Timeline timeline =
                new Timeline(
                        rank, startCell * CELL_NS, (20 - startCell) * CELL_NS, List.of(tracks));
        return new RunRecord.Rank(rank, 0, 1, 1, timeline);
    }

    private static CallSpans call(RunRecord.Rank... ranks) {
        return CallSpans.of(List.of(ranks), ranks.length, ranks.length);
    }

    private static List<String> lines(CallSpans call, boolean ascii) {
        return new TimelinePicture(call, WIDTH, ascii, PLAIN).lines();
    }

    @Test
    void aCallWithoutSpansIsNotDrawn() {
        StringWriter drawn = new StringWriter();
        Console console = new Console(new PrintWriter(drawn), false);
        TimelinePicture.draw(console, "a measured call", call(rank(0, 0), rank(1, 2)), true);
        assertEquals("", drawn.toString());
    }

    /** Rank 1 begins later; its rows reach rank 0 while that multiplies its own. */
    private static CallSpans twoRanks() {
        return call(
                rank(
                        0,
                        0,
                        track("caller"),
                        track("lane-0", span(Kind.WAIT, 1, 0, 4), span(Kind.TRANSFER, 1, 4, 12)),
                        track(
                                "compute-0",
                                span(Kind.COMPUTE, 0, 0, 10),
                                span(Kind.COMPUTE, 1, 12, 20))),
                rank(
                        1,
                        4,
                        track("lane-0", span(Kind.TRANSFER, 0, 0, 3)),
                        track("compute-0", span(Kind.COMPUTE, 1, 0, 6.5))));
    }

    @Test
    void showsEachRankAndKind() {
        assertEquals(
                List.of(
                        "  rank 0  compute  ▇▇▇▇▇▇▇▇▇▇░░▇▇▇▇▇▇▇▇  90%",
                        "          transfer ░░░░▇▇▇▇▇▇▇▇          40%",
                        "  rank 1  compute      ▇▇▇▇▇▇▄           33%",
                        "          transfer     ▇▇▇               15%",
                        "                   ╵0        ╵1 ms      busy",
                        "  ▇ busy  ▄ half busy  ░ waiting"),
                lines(twoRanks(), false));
    }

    @Test
    void doesWithoutUnicode() {
        assertEquals(
                List.of(
                        "  rank 0  compute  ##########..########  90%",
                        "          transfer ....========          40%",
                        "  rank 1  compute      #######           33%",
                        "          transfer     ===               15%",
                        "                   |0        |1 ms      busy",
                        "  # compute  = transfer  . waiting"),
                lines(twoRanks(), true));
    }

    @Test
    void leavesOutAKindThatThereIsNoneOf() {
        CallSpans direct = call(rank(0, 0, track("compute-0", span(Kind.COMPUTE, 0, 0, 20))));
        assertEquals(
                List.of(
                        "  rank 0  compute  #################### 100%",
                        "                   |0        |1 ms      busy", "  # compute  . waiting"),
                lines(direct, true));
        CallSpans gather = call(rank(0, 0, track("lane-0", span(Kind.TRANSFER, 0, 10, 20))));
        assertEquals(
                List.of(
                        "  rank 0  transfer ..........==========  50%",
                        "                   |0        |1 ms      busy", "  = transfer  . waiting"),
                lines(gather, true));
    }

    @Test
    void heightIsTheShareOfAllWorkers() {
        CallSpans call =
                call(
                        rank(
                                0,
                                0,
                                track("compute-0", span(Kind.COMPUTE, 0, 0, 20)),
                                track("compute-1", span(Kind.COMPUTE, 0, 0, 10)),
                                track("compute-2")));
        assertEquals("  rank 0  compute  ▇▇▇▇▇▇▇▇▇▇▄▄▄▄▄▄▄▄▄▄  75%", lines(call, false).getFirst());
    }

    @Test
    void aMomentOfWorkIsSeen() {
        CallSpans call =
                call(
                        rank(
                                0,
                                0,
                                track("lane-0", span(Kind.TRANSFER, 0, 0, 0.01)),
                                track("compute-0", span(Kind.COMPUTE, 0, 0, 20))));
        assertEquals("          transfer ▁                      0%", lines(call, false).get(1));
    }

    @Test
    void coloursAreThoseOfTheSource() {
        Colours colours = new Colours(true);
        List<String> lines = new TimelinePicture(twoRanks(), WIDTH, true, colours).lines();
        String own = colours.ofSource(0, "#");
        String wait = colours.faint(".");
        String peers = colours.ofSource(1, "#");
        assertEquals(
                "  rank 0  compute  " + own.repeat(10) + wait.repeat(2) + peers.repeat(8) + "  90%",
                lines.getFirst());
        String legend = new TimelinePicture(twoRanks(), 80, true, colours).lines().getLast();
        assertTrue(legend.endsWith(colours.ofSource(1, "#1")), legend);
    }

    @Test
    void manyRanksAreCounted() {
        RunRecord.Rank[] ranks =
                IntStream.range(0, 18)
                        .mapToObj(
                                rank ->
                                        rank(
                                                rank,
                                                0,
                                                track("compute-0", span(Kind.COMPUTE, 0, 0, 20))))
                        .toArray(RunRecord.Rank[]::new);
        List<String> lines = lines(call(ranks), true);
        assertEquals(8 + 3, lines.size());
        assertTrue(lines.get(0).startsWith("  rank 0  compute  #"), lines.get(0));
        assertTrue(lines.get(7).startsWith("  rank 7  compute  #"), lines.get(7));
        assertEquals("  ... and 10 more ranks", lines.get(8));
        CallSpans first = CallSpans.of(List.of(ranks[0]), 2, 2);
        assertEquals("  ... and 1 more rank", lines(first, true).get(1));
    }

    @ParameterizedTest
    @CsvSource({"80, 7", "80, 123456", "40, 999999999", "133, 2705607", "200, 26342506", "61, 1"})
    void linesFitTheTerminal(int width, long ns) {
        Timeline.Span busy = Timeline.Span.local(Kind.COMPUTE, 0, 0, 0, 1, 0, ns);
        RunRecord.Rank rank =
                new RunRecord.Rank(
                        0, 0, 1, 1, new Timeline(0, 0, ns, List.of(track("compute-0", busy))));
        for (boolean ascii : new boolean[] {true, false}) {
            List<String> lines = new TimelinePicture(call(rank), width, ascii, PLAIN).lines();
            assertEquals(width, lines.get(0).length());
            assertEquals(width, lines.get(1).length(), "the axis");
            assertTrue(lines.get(1).contains("0"), lines.get(1));
            assertTrue(lines.getLast().length() <= width, lines.getLast());
        }
    }

    @ParameterizedTest
    @CsvSource({"80, '▇0 ▇1 ▇2 ▇3 ▇4 ▇5 ▇6 ▇7 ...'", "64, '▇0 ▇1 ▇2 ▇3 ...'", "40, waiting"})
    void theLegendNamesAsManySourcesAsFit(int width, String end) {
        Timeline.Track track = track("compute-0", span(Kind.COMPUTE, 0, 0, 20));
        CallSpans call = CallSpans.of(List.of(rank(0, 0, track)), 64, 64);
        String legend =
                new TimelinePicture(call, width, false, new Colours(true)).lines().getLast();
        String plain = legend.replaceAll("\033\\[[0-9;]*m", "");
        assertTrue(plain.endsWith(" " + end), plain);
        assertTrue(plain.length() <= width, plain);
    }

    @Test
    void aCallWithoutSpansHasNoPicture() {
        assertEquals(List.of(), lines(call(), false));
        assertEquals(List.of(), lines(call(rank(0, 0, track("compute-0"))), false));
    }

    @Test
    void widthIsTheTerminals() {
        assertEquals(80, TimelinePicture.width(Map.of()));
        assertEquals(132, TimelinePicture.width(Map.of("COLUMNS", "132")));
        assertEquals(80, TimelinePicture.width(Map.of("COLUMNS", "wide")));
        assertEquals(80, TimelinePicture.width(Map.of("COLUMNS", "0")));
        List<String> wide = new TimelinePicture(twoRanks(), 9999, true, PLAIN).lines();
        assertTrue(wide.getFirst().length() < 240, "no need to fill a whole wall");
    }

    @Test
    void blocksNeedAnEncodingThatHasThem() {
        assertTrue(TimelinePicture.canShow(StandardCharsets.UTF_8));
        assertFalse(TimelinePicture.canShow(StandardCharsets.US_ASCII));
        assertFalse(TimelinePicture.canShow(StandardCharsets.ISO_8859_1));
    }
}
