package dev.weft.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.trace.Timeline;
import java.io.IOException;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** What the page's scripts read. */
class PageJsonTest {

    private static String json(PageData page) throws IOException {
        StringWriter text = new StringWriter();
        PageJson.write(page, "9.9", text);
        return text.toString();
    }

    private static Object tree(PageData page) throws IOException {
        return JsonText.parse(json(page));
    }

    private static Set<?> fields(Object tree, String path) {
        return ((Map<?, ?>) JsonText.at(tree, path)).keySet();
    }

    /** A call that reports nothing but its start and end, as Helion's on a GPU. */
    @Test
    void aRunWithoutSpansHasNoTimeline() throws IOException {
        RunRecord made = new RecordMaker().hosts(4).record();
        List<RunRecord.Rank> bare =
                made.ranks().stream()
                        .map(
                                rank ->
                                        new RunRecord.Rank(
                                                rank.rank(),
                                                0,
                                                rank.shardRows(),
                                                rank.chunkRows(),
                                                new Timeline(rank.rank(), 0, 1000, List.of())))
                        .toList();
        RunRecord record =
                new RunRecord(
                        made.problem(),
                        made.execution(),
                        made.views(),
                        made.flopsPerRank(),
                        made.verification(),
                        bare,
                        made.environment(),
                        null,
                        null);
        Object page = tree(PageData.of(RunView.withoutAdvice(record, "bare")));
        assertNull(JsonText.at(page, "runs.0.timeline"));
        assertEquals("passed", JsonText.at(page, "runs.0.verdict.state"));
    }

    @Test
    void aRunHasEverything() throws IOException {
        ShownRun run =
                new RecordMaker()
                        .hosts(4)
                        .algorithm("mesh-pull", "mesh-pull")
                        .label("my run")
                        .shown();
        Object page = tree(PageData.of(run));
        assertEquals(
                Set.of("kind", "title", "weft", "live", "progress", "runs"),
                ((Map<?, ?>) page).keySet());
        assertEquals("run", JsonText.at(page, "kind"));
        assertEquals("my run", JsonText.at(page, "title"));
        assertEquals("9.9", JsonText.at(page, "weft"));
        assertEquals(false, JsonText.at(page, "live"));
        assertNull(JsonText.at(page, "progress"));
        assertEquals(
                Set.of(
                        "name",
                        "subtitle",
                        "simulated",
                        "verdict",
                        "conclusion",
                        "facts",
                        "details",
                        "views",
                        "timeline",
                        "idle",
                        "idleText",
                        "links",
                        "advice"),
                fields(page, "runs.0"));
        assertEquals("passed", JsonText.at(page, "runs.0.verdict.state"));
        assertEquals(2100.0 / 1700, JsonText.at(page, "runs.0.facts.0.value"));
        assertEquals(1500.0, JsonText.at(page, "runs.0.views.0.medianUs"));
        assertEquals(
                List.of(1700.0, 1700.0, 1700.0), JsonText.at(page, "runs.0.views.3.samplesUs"));
        assertEquals("gather", JsonText.at(page, "runs.0.views.2.parts.0.label"));
        assertEquals(List.of(), JsonText.at(page, "runs.0.views.3.parts"));
        assertEquals(
                "Move nothing: --algorithm direct", JsonText.at(page, "runs.0.advice.0.title"));
        assertEquals(run.subtitle(), JsonText.at(page, "runs.0.subtitle"));
        assertEquals(run.details().size(), JsonText.list(page, "runs.0.details").size());
    }

    @Test
    void theTimelineIsTheCall() throws IOException {
        ShownRun run = new RecordMaker().ranks(4, 2).shown();
        Object line = JsonText.at(tree(PageData.of(run)), "runs.0.timeline");
        assertEquals(run.call().endNs(), JsonText.whole(line, "endNs"));
        assertEquals(1, JsonText.whole(line, "unitNs"));
        assertEquals(run.call().size(), JsonText.whole(line, "spanCount"));
        assertEquals(64.0, JsonText.number(line, "bytesPerRow"));
        assertEquals(run.flopsPerRow(), JsonText.number(line, "flopsPerRow"));
        assertEquals(4, JsonText.list(line, "ranks").size());
        assertEquals(3, JsonText.whole(line, "ranks.3.rank"));
        assertEquals(1, JsonText.whole(line, "ranks.3.group"));
        assertEquals("lane-0", JsonText.text(line, "ranks.3.tracks.0.name"));
        assertEquals("lane", JsonText.text(line, "ranks.3.tracks.0.kind"));
        assertEquals("compute", JsonText.text(line, "ranks.3.tracks.1.kind"));
        long spans = 0;
        for (Object rank : JsonText.list(line, "ranks")) {
            for (Object track : JsonText.list(rank, "tracks")) {
                spans += JsonText.whole(track, "spans");
            }
        }
        assertEquals(run.call().size(), spans);
        assertEquals(10, fields(line, "columns").size());
        List<Long> critical = new ArrayList<>();
        run.analysis().critical().forEach(number -> critical.add(number.longValue()));
        assertEquals(critical, JsonText.list(line, "critical"));
        assertFalse(critical.isEmpty());
    }

    @Test
    void idleTimeAndLinksAreTheAnalysis() throws IOException {
        ShownRun run = new RecordMaker().waits(60_000).shown();
        Object page = JsonText.at(tree(PageData.of(run)), "runs.0");
        List<?> ranks = JsonText.list(page, "idle");
        assertEquals(4, ranks.size());
        Set<String> kinds = Set.of("compute", "wait", "start", "overhead", "done", "transfer");
        for (Object rank : ranks) {
            double sum = 0;
            for (Object part : JsonText.list(rank, "parts")) {
                assertTrue(kinds.contains(JsonText.text(part, "kind")), part::toString);
                assertEquals(
                        "wait".equals(JsonText.at(part, "kind")),
                        JsonText.whole(part, "source") >= 0);
                sum += JsonText.number(part, "ns");
            }
            assertEquals(run.call().endNs(), sum, 1e-6 * sum);
        }
        assertEquals("waiting for rows of rank 1", JsonText.text(ranks.get(0), "parts.1.name"));
        assertEquals(run.analysis().idleText(), JsonText.text(page, "idleText"));
        assertEquals(4, JsonText.whole(page, "links.ranks"));
        assertEquals(12, JsonText.list(page, "links.links").size());
        assertEquals(
                Map.of(
                        "from",
                        0L,
                        "to",
                        1L,
                        "bytes",
                        RecordMaker.SHARD_BYTES,
                        "transfers",
                        4L,
                        "busyNs",
                        120_000L),
                JsonText.at(page, "links.links.0"));
    }

    @Test
    void whatIsNotThereIsNull() throws IOException {
        ShownRun alone = new RecordMaker().ranks(1, 1).hosts(1).shown();
        assertNull(JsonText.at(tree(PageData.of(alone)), "runs.0.links"), "no peers");
        ShownRun noisy = new RecordMaker().views(1500, 400, 2100, 1000.0, 1700.0, 2400.0).shown();
        Object page = tree(PageData.of(noisy));
        assertNull(JsonText.at(page, "runs.0.facts.1.value"));
        assertEquals("not measurable", JsonText.at(page, "runs.0.facts.1.text"));
        ShownRun told = new RecordMaker().shown();
        ShownRun spanless =
                new ShownRun(
                        "x",
                        "y",
                        false,
                        told.verdict(),
                        told.conclusion(),
                        told.facts(),
                        told.details(),
                        told.views(),
                        null,
                        0,
                        0,
                        null,
                        null);
        assertNull(JsonText.at(tree(PageData.of(spanless)), "runs.0.timeline"));
    }

    @Test
    void aComparisonHasRunsWithoutTimelines() throws IOException {
        ShownRun run = new RecordMaker().shown();
        Object page = tree(PageData.comparison(List.of(run, run, run)));
        assertEquals("compare", JsonText.at(page, "kind"));
        assertTrue(
                JsonText.at(page, "comparison.sentence").toString().contains("equally fast"),
                "who has won");
        assertEquals(List.of(), JsonText.list(page, "comparison.warnings"));
        assertEquals("3 runs compared", JsonText.at(page, "title"));
        assertEquals(3, JsonText.list(page, "runs").size());
        for (Object one : JsonText.list(page, "runs")) {
            assertNull(((Map<?, ?>) one).get("timeline"), "it would be large");
            assertNotNull(JsonText.at(one, "idle"));
        }
    }

    @Test
    void aSweepIsWrittenAsItIs() throws IOException {
        Object page =
                tree(
                        PageData.sweep(
                                "Sweep on x",
                                json -> {
                                    json.writeStringField("machine", "x");
                                    json.writeArrayFieldStart("rows");
                                    json.writeEndArray();
                                }));
        assertEquals("sweep", JsonText.at(page, "kind"));
        assertEquals(List.of(), JsonText.at(page, "runs"));
        assertEquals(Map.of("machine", "x", "rows", List.of()), JsonText.at(page, "sweep"));
    }

    @Test
    void aLivePageSaysHowFarItHasCome() throws IOException {
        PageData page =
                new PageData("t", null, List.of(), null)
                        .live(new PageData.Progress("measuring", 17, 40, false, null));
        Object tree = tree(page);
        assertEquals(true, JsonText.at(tree, "live"));
        assertEquals("run", JsonText.at(tree, "kind"));
        assertEquals(
                List.of("what", "done", "of", "ended", "failed"),
                List.copyOf(fields(tree, "progress")));
        assertEquals(17, JsonText.whole(tree, "progress.done"));
        assertNull(JsonText.at(tree, "progress.failed"));
        assertEquals(
                "no <b>luck</b>",
                JsonText.at(
                        tree(page.live(new PageData.Progress("x", 0, 0, true, "no <b>luck</b>"))),
                        "progress.failed"));
    }

    /** Wherever text comes from a record: label, names of tracks, fields and values of a sweep. */
    @Test
    void noTextEndsTheElementItStandsIn() throws IOException {
        String text = "</script><!--<script>&amp;\"'\\ \u2028 \ud83d\ude00";
        ShownRun run = new RecordMaker().label(text).shown();
        String json = json(PageData.of(run));
        String sweep =
                json(
                        PageData.sweep(
                                text,
                                generator -> {
                                    generator.writeStringField(text, text);
                                    generator.writeFieldName(text + 2);
                                    generator.writeString(text.toCharArray(), 0, text.length());
                                }));
        for (String written : List.of(json, sweep)) {
            for (char character : new char[] {'<', '>', '&'}) {
                assertFalse(written.indexOf(character) >= 0, character + " in " + written);
            }
        }
        assertEquals(text, JsonText.at(JsonText.parse(json), "runs.0.name"));
        assertEquals(
                Map.of(text, text, text + 2, text), JsonText.at(JsonText.parse(sweep), "sweep"));
    }
}
