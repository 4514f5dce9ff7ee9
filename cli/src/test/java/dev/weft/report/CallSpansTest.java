package dev.weft.report;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.report.CallSpans.TrackKind;
import dev.weft.trace.Timeline;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CallSpansTest {

    /** Two groups of two; the second rank begins first. */
    private static CallSpans groups() {
        return CallSpans.of(
                List.of(
                        Calls.rank(
                                0,
                                0,
                                0,
                                1_000_050,
                                Calls.track("lane-0", Calls.transfer(1, 1, 0, 0, 10, 20)),
                                Calls.track("compute-0", Calls.product(0, 0, 0, 100, 0, 30))),
                        Calls.rank(
                                1,
                                0,
                                1,
                                1_000_000,
                                Calls.track("compute-0", Calls.product(1, 1, 0, 100, 0, 40))),
                        Calls.rank(
                                2,
                                1,
                                0,
                                1_000_020,
                                Calls.track("lane-0", Calls.transfer(1, 1, 0, 0, 5, 15))),
                        Calls.rank(
                                3,
                                1,
                                1,
                                1_000_010,
                                Calls.track("compute-0", Calls.wait(0, 0, 60)))),
                4,
                2);
    }

    @Test
    void timesAreSinceTheFirstRanksStart() {
        CallSpans call = groups();
        assertEquals(
                List.of(50L, 0L, 20L, 10L),
                call.ranks().stream().map(CallSpans.RankSpans::startNs).toList());
        assertEquals(60, call.span(0).startNs());
        assertEquals(80, call.span(1).endNs());
        assertEquals(
                List.of(80L, 40L, 35L, 70L),
                call.ranks().stream().map(CallSpans.RankSpans::endNs).toList());
        assertEquals(80, call.endNs());
    }

    @Test
    void ranksHaveTheWorldsNumbers() {
        CallSpans call = groups();
        assertEquals(4, call.worldSize());
        Timeline.Span inSecondGroup = call.span(3);
        assertEquals(3, inSecondGroup.source());
        assertEquals(3, inSecondGroup.peer());
        assertEquals(2, inSecondGroup.to());
        assertEquals(0, inSecondGroup.chunk());
        assertEquals(1000, inSecondGroup.bytes());
        assertEquals(-1, call.span(4).to(), "none stays none");
        assertEquals(2, call.span(4).source());
    }

    @Test
    void spansAreNumberedThroughRanksTracksAndTime() {
        CallSpans call = groups();
        assertEquals(5, call.size());
        assertEquals(
                List.of(0, 2, 3, 4),
                call.ranks().stream().map(CallSpans.RankSpans::firstSpan).toList());
        int number = 0;
        for (CallSpans.RankSpans rank : call.ranks()) {
            for (Timeline.Track track : rank.tracks()) {
                for (Timeline.Span span : track.spans()) {
                    assertEquals(span, call.span(number++));
                }
            }
        }
    }

    @Test
    void aRankEndsWithItsLastSpanThoughItsTimerStoppedBefore() {
        Timeline timeline =
                new Timeline(
                        0,
                        7,
                        10,
                        List.of(Calls.track("compute-0", Calls.product(0, 0, 0, 1, 0, 12))));
        CallSpans call = CallSpans.of(List.of(new RunRecord.Rank(0, 0, 1, 1, timeline)), 1, 1);
        assertEquals(12, call.endNs());
        assertEquals(12, call.ranks().getFirst().endNs());
    }

    @Test
    void aCallMayHaveNoSpans() {
        CallSpans call = CallSpans.of(List.of(), 8, 8);
        assertEquals(0, call.size());
        assertEquals(0, call.endNs());
        assertEquals(8, call.worldSize());
    }

    /** Tracks of a gather by several programs have the program's name behind their own. */
    @ParameterizedTest
    @CsvSource({
        "caller,CALLER",
        "lane-0,LANE",
        "lane-12,LANE",
        "copies,LANE",
        "gather,LANE",
        "compute,COMPUTE",
        "compute-3,COMPUTE",
        "compute-0 of program-1,COMPUTE",
        "lane-0 of program-1,LANE",
        "caller of program-1,CALLER"
    })
    void aTracksNameSaysWhatItsWorkerDoes(String name, TrackKind kind) {
        assertEquals(kind, TrackKind.of(name));
    }
}
