package dev.weft.compat.command;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Invocation;
import dev.weft.cli.console.ExitCode;
import dev.weft.report.JsonText;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** {@code --report} and {@code --trace} of every command that makes a call. */
class SourceReportsTest {

    private static final Pattern DATA =
            Pattern.compile("<script id=\"weft-data\"[^>]*>(.*?)</script", Pattern.DOTALL);

    @TempDir Path folder;

    /** Runs it with both options; the data of its page. */
    private Object page(String command) throws IOException {
        Path html = folder.resolve("x.html");
        Path trace = folder.resolve("t.json");
        Invocation run =
                Invocation.of((command + " --report " + html + " --trace " + trace).split(" "));
        assertEquals(0, run.code(), run.err() + run.out());
        assertTrue(run.out().contains("[INFO] Wrote the report to " + html), run.out());
        assertTrue(run.out().contains("[INFO] Wrote the trace (open it in Perfetto"), run.out());
        Matcher data = DATA.matcher(Files.readString(html));
        assertTrue(data.find(), "a page");
        return JsonText.parse(data.group(1));
    }

    private List<?> events() throws IOException {
        return JsonText.list(
                JsonText.parse(Files.readString(folder.resolve("t.json"))), "traceEvents");
    }

    private static double linkBytes(Object page) {
        double bytes = 0;
        for (Object cell : JsonText.list(page, "runs.0.links.links")) {
            bytes += JsonText.number(cell, "bytes");
        }
        return bytes;
    }

    private static void assertPartsAddUp(Object page) {
        double endNs = JsonText.number(page, "runs.0.timeline.endNs");
        for (Object rank : JsonText.list(page, "runs.0.idle")) {
            double sum = 0;
            for (Object part : JsonText.list(rank, "parts")) {
                sum += JsonText.number(part, "ns");
            }
            assertEquals(endNs, sum, 1e-6 * endNs, rank::toString);
        }
    }

    private static double fact(Object page, String key) {
        for (Object fact : JsonText.list(page, "runs.0.facts")) {
            if (JsonText.at(fact, "key").equals(key)) {
                return JsonText.number(fact, "value");
            }
        }
        throw new AssertionError("no fact " + key);
    }

    private static long spans(List<?> events) {
        return events.stream().filter(event -> "X".equals(JsonText.at(event, "ph"))).count();
    }

    @Test
    void aRingShowsWhatItSent() throws IOException {
        Object page = page("ring -n 4 --m 16 --k 96 --n-local 24");
        assertEquals("run", JsonText.at(page, "kind"));
        assertEquals("passed", JsonText.at(page, "runs.0.verdict.state"));
        assertEquals(
                "4 ranks (threads) on cpu, ring, [64 x 96] x [96 x 96], bf16",
                JsonText.at(page, "runs.0.subtitle"));
        assertEquals(4, JsonText.list(page, "runs.0.timeline.ranks").size());
        assertEquals(3.0 * 4 * 16 * 96 * 2, linkBytes(page), "every shard to three others");
        assertEquals(4, JsonText.list(page, "runs.0.links.links").size(), "to a neighbour");
        assertPartsAddUp(page);
        assertTrue(fact(page, "speedup") > 0 && fact(page, "limitFraction") > 0);
        assertEquals("pipelined", JsonText.at(page, "runs.0.views.3.key"));
        assertEquals(JsonText.whole(page, "runs.0.timeline.spanCount"), spans(events()));
        assertEquals(2.0 * 96 * 24, JsonText.number(page, "runs.0.timeline.flopsPerRow"));
        assertEquals(192.0, JsonText.number(page, "runs.0.timeline.bytesPerRow"));
    }

    @Test
    void fgccShowsItsGroups() throws IOException {
        Object page =
                page("fgcc -n 4 --groups 2 --m 16 --k 64 --n-global 32 --warmup 1 --iterations 3");
        assertEquals("passed", JsonText.at(page, "runs.0.verdict.state"));
        assertEquals(1, JsonText.whole(page, "runs.0.timeline.ranks.3.group"));
        assertEquals(3, JsonText.list(page, "runs.0.views.0.samplesUs").size());
        assertEquals(2.0 * 2 * 16 * 64 * 2, linkBytes(page), "to the other rank of the group");
        for (Object cell : JsonText.list(page, "runs.0.links.links")) {
            assertEquals(JsonText.whole(cell, "from") / 2, JsonText.whole(cell, "to") / 2);
        }
        assertPartsAddUp(page);
        assertTrue(fact(page, "tflops") > 0);
        assertEquals(JsonText.whole(page, "runs.0.timeline.spanCount"), spans(events()));
    }

    @Test
    void helionShowsItsViews() throws IOException {
        Object page = page("helion -n 2 --m 16 --k 64 --n 32 --warmup 1 --iterations 3");
        assertEquals("passed", JsonText.at(page, "runs.0.verdict.state"));
        assertEquals(3, JsonText.list(page, "runs.0.views.3.samplesUs").size());
        assertTrue(fact(page, "speedup") > 0);
        assertEquals(JsonText.whole(page, "runs.0.timeline.spanCount"), spans(events()));
        // Each rank pulls the other one's 8 rows.
        assertEquals(2.0 * 8 * 64 * 2, linkBytes(page));
        assertPartsAddUp(page);
    }

    @ParameterizedTest
    @CsvSource({
        "ring -r sim -v trn2 -n 4 --m 64 --k 128",
        "fgcc -r sim -v trn2 -n 4 --m 64 --k 128",
        "gather -r sim -v trn2 -n 4",
        "helion -r sim -v h200-nvlink8 -n 4"
    })
    void whatIsSimulatedIsShownAsPredicted(String command) throws IOException {
        Object page = page(command);
        assertEquals("predicted", JsonText.at(page, "runs.0.verdict.state"));
        assertTrue(spans(events()) > 0, "with spans");
    }

    @ParameterizedTest
    @CsvSource({
        "--algorithm mesh-pull,3",
        "--rows --algorithm ring,3",
        "--groups 2 --algorithm mesh-push,1",
        "--tiled --m 256 --lnc 2 --algorithm ring,3"
    })
    void aGatherShowsItsLanes(String options, int peers) throws IOException {
        Object page = page("gather -n 4 --w 16 --warmup 1 --iterations 2 " + options);
        assertEquals("passed", JsonText.at(page, "runs.0.verdict.state"));
        int rows = options.contains("tiled") ? 256 : 128;
        assertEquals(4.0 * peers * rows * 16 * 2, linkBytes(page));
        assertEquals(4, JsonText.list(page, "runs.0.idle").size());
        assertPartsAddUp(page);
        assertEquals(0.0, JsonText.number(page, "runs.0.timeline.flopsPerRow"));
        assertEquals("copy", JsonText.at(page, "runs.0.views.1.key"));
        assertEquals(2, JsonText.list(page, "runs.0.views.1.samplesUs").size());
        assertEquals(JsonText.whole(page, "runs.0.timeline.spanCount"), spans(events()));
        assertTrue(fact(page, "gbPerSecond") > 0);
    }

    /** A caller only stages; with two programs it is called "caller of program-0". */
    @Test
    void theCallerIsNoLaneThoughThereAreSeveralPrograms() throws IOException {
        Object page = page("gather --tiled -n 2 --m 256 --w 16 --lnc 2 --warmup 1 --iterations 1");
        for (Object rank : JsonText.list(page, "runs.0.timeline.ranks")) {
            for (Object track : JsonText.list(rank, "tracks")) {
                boolean caller = JsonText.text(track, "name").startsWith("caller");
                assertEquals(caller, JsonText.at(track, "kind").equals("caller"), track::toString);
            }
        }
    }

    @Test
    void aSweepShowsItsRowsAndTracesTheLargestSpeedup() throws IOException {
        Path record = folder.resolve("s.json");
        Object page =
                page(
                        "sweep -v h200-nvlink8 -n 4 --gm 4096 --gk 512 --gn 512,1024"
                                + " --algorithm mesh-push,direct,sequential --splits 2,8 --json "
                                + record);
        assertEquals("sweep", JsonText.at(page, "kind"));
        assertEquals("Sweep on h200-nvlink8", JsonText.at(page, "title"));
        assertEquals(JsonText.parse(Files.readString(record)), JsonText.at(page, "sweep"));
        Map<?, ?> best = null;
        for (Object row : JsonText.list(page, "sweep.rows")) {
            Map<?, ?> one = (Map<?, ?>) row;
            if (one.get("speedup") instanceof Double speedup
                    && (best == null || speedup > (Double) best.get("speedup"))) {
                best = one;
            }
        }
        String about =
                "h200-nvlink8, M 4096, K 512, N %s, 4 ranks, %s, %s chunks per source (simulated)"
                        .formatted(best.get("n"), best.get("algorithm"), best.get("chunks"));
        Object trace = JsonText.parse(Files.readString(folder.resolve("t.json")));
        assertEquals(about, JsonText.at(trace, "otherData.run"));
        assertTrue(spans(events()) > 0, "with spans");
    }

    @Test
    void aSweepOfWhichNothingCanBeDoneHasNoTrace() throws IOException {
        Path trace = folder.resolve("t.json");
        Invocation sweep =
                Invocation.of(
                        "sweep",
                        "-v",
                        "trn2",
                        "--algorithm",
                        "direct",
                        "--quiet",
                        "--trace",
                        trace.toString());
        assertEquals(ExitCode.USAGE, sweep.code());
        assertEquals(1, sweep.err().lines().count(), sweep.err());
        assertTrue(sweep.err().contains("can do none of the combinations"), sweep.err());
        assertFalse(Files.exists(trace));
    }

    @ParameterizedTest
    @CsvSource({
        "-n 3 --gm 60 --gk 32 --gn 16 --algorithm mesh-push --warmup 1 --iterations 3,passed",
        "-r sim --no-verify -v trn2 -n 4 --gm 512 --gk 128 --gn 64 --algorithm ring,predicted"
    })
    void aRunShowsItself(String options, String verdict) throws IOException {
        Object page = page("run " + options + " --label mine --data-dir " + folder.resolve("out"));
        assertEquals("mine", JsonText.at(page, "runs.0.name"));
        assertEquals(verdict, JsonText.at(page, "runs.0.verdict.state"));
        assertPartsAddUp(page);
        assertTrue(linkBytes(page) > 0);
        assertEquals(JsonText.whole(page, "runs.0.timeline.spanCount"), spans(events()));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "run --report -|--report -: expected a file",
                "run --trace -|--trace -: expected a file",
                "run -r sim -v trn2 --report -|--report -: expected a file",
                "ring --report -|--report -: expected a file",
                "fgcc --trace -|--trace -: expected a file",
                "gather --report -|--report -: expected a file",
                "helion --report -|--report -: expected a file",
                "ring --launcher processes --report -|--report -: expected a file",
                "ring -r sim -v trn2 --trace -|--trace -: expected a file",
                "sweep -v trn2 --report -|--report -: expected a file",
                "run --report FOLDER/none/x.html|/none/x.html: expected a file in a folder",
                "run --trace FOLDER/none/x.json|/none/x.json: expected a file in a folder",
                "run -r sim -v trn2 --report FOLDER/none/x.html|/none/x.html: expected a file in",
                "ring --report FOLDER/none/x.html|/none/x.html: expected a file in a folder",
                "fgcc --report FOLDER/none/x.html|/none/x.html: expected a file in a folder",
                "gather --trace FOLDER/none/x.json|/none/x.json: expected a file in a folder",
                "sweep -v trn2 --report FOLDER/none/x.html|/none/x.html: expected a file in a",
                "run -r sim -v trn2 --watch|--watch is for real ranks"
            })
    void whatCannotBeWrittenIsRefusedBeforeAnythingRuns(String line, String expected)
            throws IOException {
        String command = line.replace("FOLDER", folder.toString());
        if (command.startsWith("run")) {
            command += " --data-dir " + folder.resolve("out");
        }
        Invocation run = Invocation.ofWords(command);
        assertEquals(ExitCode.USAGE, run.code(), run.err());
        assertEquals(1, run.err().lines().count(), run.err());
        assertTrue(run.err().contains(expected), run.err());
        assertEquals("", run.out(), "nothing was said, so nothing was done");
        try (Stream<Path> left = Files.list(folder)) {
            assertEquals(List.of(), left.toList());
        }
    }

    /** Standard output is no place for a page, and no message offers it. */
    @Test
    void theMessageDoesNotOfferWhatIsRefused() {
        Invocation run = Invocation.of("ring", "--report", "/nowhere/x.html");
        assertFalse(run.err().contains("or -"), run.err());
    }

    @Test
    void aSweepCanBeWatched() {
        Invocation sweep = Invocation.of("sweep", "-v", "trn2", "--algorithm", "ring", "--watch");
        assertEquals(0, sweep.code(), sweep.err());
        assertTrue(sweep.out().startsWith("[INFO] Watch it at http://127.0.0.1:"), sweep.out());
    }
}
