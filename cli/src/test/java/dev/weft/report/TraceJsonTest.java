package dev.weft.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import java.io.IOException;
import java.io.StringWriter;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Traces of calls made by hand and simulated, each checked against the published format. */
class TraceJsonTest {

    private static Timeline.Span transfer(
            int source, int peer, int to, int chunk, long startNs, long endNs) {
        return new Timeline.Span(
                Kind.TRANSFER, source, peer, to, chunk, 128L * chunk, 128, 4096, startNs, endNs);
    }

    private static Timeline.Span local(Kind kind, int source, int peer, long start, long end) {
        return Timeline.Span.local(kind, source, peer, 0, 256, start, end);
    }

    private static RunRecord.Rank rank(
            int rank, int group, long startNs, Timeline.Track... tracks) {
        Timeline timeline = new Timeline(rank, startNs, 10_000, List.of(tracks));
        return new RunRecord.Rank(rank, group, 256, 128, timeline);
    }

    private static Timeline.Track track(String name, Timeline.Span... spans) {
        return new Timeline.Track(name, List.of(spans));
    }

    private static TraceEvents trace(CallSpans call, Map<String, String> about) throws IOException {
        StringWriter text = new StringWriter();
        TraceJson.write(call, 1000, about, text);
        return TraceEvents.checked(text.toString());
    }

    private static TraceEvents trace(CallSpans call) throws IOException {
        return trace(call, Map.of());
    }

    /** Rank 1 pulls both chunks of rank 0, one ends as the next begins, and multiplies them. */
    private static CallSpans pulled(long computeStartNs) {
        return CallSpans.of(
                List.of(
                        rank(0, 0, 500, track("caller"), track("lane-0")),
                        rank(
                                1,
                                0,
                                1500,
                                track(
                                        "lane-0",
                                        local(Kind.WAIT, 0, 0, 0, 1001),
                                        transfer(0, 0, 1, 0, 1001, 2002),
                                        transfer(0, 0, 1, 1, 2002, 4004)),
                                track(
                                        "compute-0",
                                        local(Kind.COMPUTE, 0, 1, computeStartNs, 9000)))),
                2,
                2);
    }

    @Test
    void ranksAreProcessesAndWorkersThreads() throws IOException {
        TraceEvents trace = trace(pulled(5000));
        assertEquals(
                List.of("rank 0 (group 0)", "rank 1 (group 0)"), trace.metadata("process_name"));
        assertEquals(
                List.of("caller", "lane-0", "lane-0", "compute-0"), trace.metadata("thread_name"));
        assertEquals(List.of(0L, 1L), trace.metadata("process_sort_index"));
        assertEquals(List.of(0L, 1L, 0L, 1L), trace.metadata("thread_sort_index"));
    }

    @Test
    void slicesTellWhatTheSpansTell() throws IOException {
        TraceEvents trace = trace(pulled(5000));
        assertEquals(
                List.of(
                        "wait for rank 0",
                        "rank 0 chunk 0",
                        "rank 0 chunk 1",
                        "rows 0-255 of rank 0"),
                trace.of("X").stream().map(event -> event.get("name")).toList());
        Map<String, Object> second = trace.of("X").get(2);
        assertEquals("transfer", second.get("cat"));
        assertEquals(1L, second.get("pid"));
        assertEquals(0L, second.get("tid"));
        assertEquals(3.002, second.get("ts"), "since rank 0's start, which was 1000 ns earlier");
        assertEquals(2.002, second.get("dur"));
        Map<String, Object> expected = new TreeMap<>();
        expected.putAll(Map.of("source", 0L, "peer", 0L, "from", 0L, "to", 1L, "chunk", 1L));
        expected.putAll(Map.of("firstRow", 128L, "rows", 128L, "bytes", 4096L));
        expected.put("gbPerSecond", 2.046);
        assertEquals(expected, new TreeMap<>(TraceEvents.arguments(second)));
        Map<String, Object> product = TraceEvents.arguments(trace.of("X").get(3));
        assertEquals(64.0, product.get("gflops"), "256 rows of 1000 operations in 4000 ns");
        assertFalse(product.containsKey("chunk"));
        assertFalse(product.containsKey("to"));
    }

    @Test
    void namesWhatIsNotAboutOneChunk() throws IOException {
        TraceEvents trace =
                trace(
                        CallSpans.of(
                                List.of(
                                        rank(
                                                0,
                                                0,
                                                0,
                                                track("caller", local(Kind.STAGE, 0, 0, 0, 10)),
                                                track("gather", local(Kind.TRANSFER, 0, 0, 10, 20)),
                                                track("compute-0", local(Kind.WAIT, 1, 0, 0, 20)))),
                                2,
                                2));
        assertEquals(
                List.of("stage 256 rows", "gather 256 rows", "wait for rank 1"),
                trace.of("X").stream().map(event -> event.get("name")).toList());
    }

    @Test
    void estimatedTimesAreMarked() throws IOException {
        StringWriter text = new StringWriter();
        CallSpans call = CallSpans.of(new RecordMaker().estimated().record());
        TraceJson.write(call, 1000, Map.of(), text);
        long products =
                IntStream.range(0, call.size())
                        .filter(i -> call.span(i).kind() == Kind.COMPUTE)
                        .count();
        assertEquals(products, text.toString().split("\"estimated\":true", -1).length - 1);
    }

    @Test
    void arrowsLeadFromTransfersToWhatTheyRelease() throws IOException {
        TraceEvents trace = trace(pulled(5000));
        assertEquals(
                List.of(
                        "rank 0 chunk 0 -> rows 0-255 of rank 0",
                        "rank 0 chunk 1 -> rows 0-255 of rank 0"),
                trace.arrows());
    }

    @Test
    void anArrowStartsBeforeItEndsThoughTheClockWasReadLate() throws IOException {
        TraceEvents trace = trace(pulled(3000));
        assertEquals(2, trace.arrows().size(), "the second transfer is told to end at 4004");
        assertEquals(
                List.of("rank 0 chunk 0 -> rows 0-255 of rank 0"),
                trace(pulled(1500)).arrows(),
                "none that would point back in time");
    }

    @Test
    void aChunkThatIsPassedOnHasAnArrowToTheNextRank() throws IOException {
        CallSpans call =
                CallSpans.of(
                        List.of(
                                rank(4, 1, 0, track("lane-0", transfer(0, 1, 1, 0, 0, 100))),
                                rank(5, 1, 0, track("lane-0", transfer(0, 2, 2, 0, 200, 300))),
                                rank(6, 1, 0, track("compute-0"))),
                        8,
                        4);
        TraceEvents trace = trace(call);
        assertEquals(List.of("rank 4 chunk 0 -> rank 4 chunk 0"), trace.arrows());
        assertEquals(4L, trace.of("s").getFirst().get("pid"));
        assertEquals(5L, trace.of("f").getFirst().get("pid"));
        assertEquals("rank 4 (group 1)", trace.metadata("process_name").getFirst());
    }

    @Test
    void slicesOfAThreadDoNotOverlapThoughSpansDo() throws IOException {
        CallSpans call =
                CallSpans.of(
                        List.of(
                                rank(
                                        0,
                                        0,
                                        0,
                                        track(
                                                "lane-0",
                                                transfer(1, 1, 0, 0, 0, 300),
                                                transfer(1, 1, 0, 1, 200, 200),
                                                transfer(1, 1, 0, 2, 200, 400)))),
                        2,
                        2);
        assertEquals(
                List.of(0.199, 0.0, 0.2),
                trace(call).of("X").stream().map(event -> event.get("dur")).toList());
    }

    @Test
    void anyTextSurvives() throws IOException {
        String text = "<b>\"quoted\"</b> \\ \n \u2588 {";
        CallSpans call = CallSpans.of(List.of(rank(0, 0, 0, track(text))), 1, 1);
        TraceEvents trace = trace(call, Map.of("label", text));
        assertEquals(text, trace.otherData().get("label"));
        assertEquals(List.of(text), trace.metadata("thread_name"));
    }

    @Test
    void aCallWithoutSpansIsATraceToo() throws IOException {
        assertEquals(List.of(), trace(CallSpans.of(List.of(), 2, 2)).of("X"));
    }

    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"AUTO"},
            mode = EnumSource.Mode.EXCLUDE)
    void simulatedCallsKeepToTheFormat(Algorithm algorithm) throws IOException {
        CallSpans call = Calls.simulated("Ascend910B1", algorithm, Shards.even(4096, 4), 4);
        TraceEvents trace = trace(call);
        assertEquals(call.size(), trace.of("X").size());
        long transfers = trace.ofCategory("transfer");
        if (algorithm == Algorithm.DIRECT) {
            assertEquals(0, transfers, "nothing travels");
        } else {
            assertEquals(3 * 4 * 4, transfers, "four chunks of each rank to the three others");
            assertTrue(trace.arrows().size() >= transfers, "each releases a product at least");
        }
    }
}
