package dev.weft.report.browser;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.report.browser.Report.Span;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The pages of real commands in a real browser, beside the records of the same commands. */
class ReportPageIT extends InChromium {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final String MARKUP = "<script>document.title=\"bad\"</script>";
    private static final String IMAGE = "<img src=x onerror=alert(1)>.json";
    static final String TIP = "document.getElementById('weft-tooltip')";
    static final String TIMELINE = "document.getElementById('timeline-chart')";
    static final String ZOOM_WIDTH = "(weft.zoomRange()[1] - weft.zoomRange()[0])";

    /**
     * Of each chart in a section, how many pixels are neither blank nor grey, as text and axes are.
     */
    private static final String COLOURED_PIXELS =
            """
            function colouredPixels(section) {
                const inCanvas = canvas => {
                    const context = canvas.getContext('2d');
                    const rgba = context.getImageData(0, 0, canvas.width, canvas.height).data;
                    let count = 0;
                    for (let i = 0; i < rgba.length; i += 4) {
                        const rgb = [rgba[i], rgba[i + 1], rgba[i + 2]];
                        if (rgba[i + 3] === 255 && Math.max(...rgb) - Math.min(...rgb) > 40) {
                            count++;
                        }
                    }
                    return count;
                };
                return [...document.querySelectorAll(`#${section} .chart`)].map(chart =>
                    Math.max(...[...chart.querySelectorAll('canvas')].map(inCanvas)));
            }
            """;

    @TempDir static Path folder;

    @BeforeAll
    static void makePages() throws Exception {
        Weft.run(
                folder,
                "run -n 4 --gm 256 --gk 32 --gn 32 --splits-per-rank 8 --algorithm mesh-pull"
                        + " --engine scalar"
                        + " --warmup 1 --iterations 5 --data-dir out --json run.json"
                        + " --report run.html");
        Weft.run(
                folder,
                "run -r sim --no-verify -v cpu-100gbe -n 8 --gm 4096 --gk 1024 --gn 256 --algorithm ring"
                        + " --slow 2=3 --json sim.json --report sim.html --label "
                        + MARKUP);
        Weft.run(
                folder,
                "run -r sim --no-verify -v cpu-100gbe -n 4 --gm 4096 --gk 1024 --gn 256 --algorithm mesh-pull"
                        + " --json other.json");
        Files.copy(folder.resolve("other.json"), folder.resolve(IMAGE));
        Weft.run(
                folder,
                List.of("report", "other.json", "sim.json", IMAGE, "--report", "compare.html"));
        Weft.run(
                folder,
                "sweep -v h200-nvlink8 --gm 1024..8192 --gk 1024 --gn 1024 -n 4,8 --splits 4,16"
                        + " --algorithm mesh-push,ring,direct,sequential --json sweep.json"
                        + " --report sweep.html");
    }

    private static Report record(String name) throws IOException {
        return Report.of(folder.resolve(name));
    }

    /** In a window so high that all of a small run's timeline is in view. */
    private static Page open(String name) {
        Page page = chromium.page();
        page.size(1280, 2400);
        page.openReport(folder.resolve(name).toUri());
        return page;
    }

    @ParameterizedTest
    @ValueSource(strings = {"run.html", "sim.html", "compare.html", "sweep.html"})
    void opensWithoutErrorsAndRequestsHoweverItIsShown(String name) {
        try (Page page = open(name)) {
            for (String scheme : List.of("dark", "light")) {
                page.emulate("screen", scheme);
                page.awaitFrames();
                page.emulate("print", scheme);
                page.awaitFrames();
            }
            page.emulate("screen", "light");
            page.size(390, 800);
            page.awaitFrames();
            assertEquals(List.of(), page.consoleErrors());
            assertEquals(List.of(), page.requests());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"run", "sim"})
    void theNumbersAreTheRecords(String name) throws IOException {
        Report record = record(name + ".json");
        try (Page page = open(name + ".html")) {
            record.assertShownOn(page);
            Object data = page.evaluate(Report.DATA);
            assertEquals(
                    record.spans().size(), Json.number(data, "runs", 0, "timeline", "spanCount"));
            String verdict = page.text("document.querySelector('[data-verdict]').dataset.verdict");
            assertEquals(name.equals("sim") ? "predicted" : "passed", verdict);
        }
    }

    /**
     * The views of a real run are left out: one slow sample makes the bars as short as it likes.
     */
    @ParameterizedTest
    @CsvSource({
        "run.html,timeline idle links",
        "sim.html,timeline idle views links",
        "compare.html,views speedups idle-0 idle-1 idle-2",
        "sweep.html,curves heat"
    })
    void everyChartIsDrawnInColour(String name, String sections) {
        try (Page page = open(name)) {
            page.evaluate(COLOURED_PIXELS);
            for (String section : sections.split(" ")) {
                List<?> counts = (List<?>) page.evaluate("colouredPixels('" + section + "')");
                assertFalse(counts.isEmpty(), section);
                for (Object count : counts) {
                    assertTrue((Long) count > 500, section + " " + counts);
                }
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"run", "sim"})
    void theTooltipSaysWhatASpanDid(String name) throws IOException {
        Report record = record(name + ".json");
        try (Page page = open(name + ".html")) {
            Span transfer = record.longest("transfer");
            Map<?, ?> said = hover(page, transfer);
            assertEquals("rank " + transfer.of("source"), said.get("Source"));
            assertEquals("" + transfer.of("chunk"), said.get("Chunk"));
            assertEquals(
                    String.format(Locale.US, "%,d", transfer.of("bytes")),
                    firstWord(said.get("Bytes")));
            assertSpeed(1e9 * transfer.of("bytes") / transfer.ns(), "B/s", said);
            long to = transfer.of("to");
            long from = to == transfer.rank() ? transfer.of("peer") : transfer.rank();
            assertEquals("rank " + from + " \u2192 rank " + to, said.get("Link"));

            Span compute = record.longest("compute");
            said = hover(page, compute);
            assertEquals("rank " + compute.of("source"), said.get("Source"));
            // Each rank multiplies by its columns of B.
            double columns = record.number("problem", "n") / record.number("problem", "ranks");
            double flops = 2.0 * compute.of("rows") * record.number("problem", "k") * columns;
            assertSpeed(1e9 * flops / compute.ns(), "FLOP/s", said);

            if (name.equals("sim")) {
                Span wait = record.longest("wait");
                said = hover(page, wait);
                assertEquals("rank " + wait.of("source"), said.get("Source"));
                assertEquals("rank " + wait.of("peer"), said.get("Waits for"));
            }
        }
    }

    private static String firstWord(Object text) {
        return ((String) text).split(" ")[0];
    }

    /** Shown with three digits, in thousands, millions or billions. */
    private static void assertSpeed(double expected, String unit, Map<?, ?> said) {
        String speed = (String) said.get("Speed");
        assertTrue(speed.matches("[0-9.,]+ [kMG]?" + unit), speed);
        double scale = Map.of('k', 1e3, 'M', 1e6, 'G', 1e9).getOrDefault(prefix(speed), 1.0);
        double shown = Double.parseDouble(firstWord(speed).replace(",", ""));
        assertEquals(expected, scale * shown, 0.006 * expected, speed);
    }

    private static char prefix(String speed) {
        return speed.charAt(speed.indexOf(' ') + 1);
    }

    /** Whatever holds a transfer up, three digits of its speed are shown. */
    @Test
    void aSpeedHasThreeDigits() throws IOException {
        String words;
        try (InputStream in = getClass().getResourceAsStream("/dev/weft/report/page/words.js")) {
            words = new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
        Map<String, String> shown =
                Map.of(
                        "3, 80000, 'B'", "37.5 kB/s",
                        "3, 80000000000, 'B'", "0.0375 B/s",
                        "7400, 1000, 'FLOP'", "7.40 GFLOP/s",
                        "1e9 + 1, 1000, 'B'", "1,000,000 GB/s",
                        "3, 0, 'B'", "too short to tell");
        try (Page page = open("run.html")) {
            for (String rate : shown.keySet()) {
                String call = "(() => {%s; return formatRate(%s)})()".formatted(words, rate);
                assertEquals(shown.get(rate), page.text(call), rate);
            }
        }
    }

    /** What the tooltip of a span says, by label, once it is wide enough for the mouse. */
    private static Map<?, ?> hover(Page page, Span span) {
        page.click(button("All"));
        page.awaitTrue(ZOOM_WIDTH + " === 100", LIMIT);
        Object point = pointOf(page, span);
        for (int i = 0; !isWide(page, span, point); i++) {
            assertTrue(i < 50, "no zoom makes " + span + " wide");
            double width = page.number(ZOOM_WIDTH);
            page.controlWheel(Json.number(point, "x"), Json.number(point, "y"), -240);
            page.awaitTrue(ZOOM_WIDTH + " < " + width, LIMIT);
            point = pointOf(page, span);
        }
        page.hover(Math.rint(Json.number(point, "x")), Json.number(point, "y"));
        Map<?, ?> said = tooltip(page);
        assertEquals("" + span.rank(), said.get("Rank"));
        assertEquals(span.track(), said.get("Track"));
        return said;
    }

    private static Object pointOf(Page page, Span span) {
        return page.evaluate("weft.rowPoint(" + span.number() + ")");
    }

    private static boolean isWide(Page page, Span span, Object point) {
        return page.isTrue(
                String.format(
                        "[-2, 0, 2].every(by => weft.spanAt(%s + by, %s) === %d)",
                        Json.number(point, "x"), Json.number(point, "y"), span.number()));
    }

    private static Map<?, ?> tooltip(Page page) {
        page.awaitTrue(TIP + ".checkVisibility()", LIMIT);
        return (Map<?, ?>)
                page.evaluate(
                        "Object.fromEntries([..."
                                + TIP
                                + ".querySelectorAll('dt')].map(label =>"
                                + " [label.textContent, label.nextSibling.textContent]))");
    }

    private static String button(String text) {
        return "[...document.querySelectorAll('button')].find(button => button.textContent === "
                + Page.quoted(text)
                + ")";
    }

    @Test
    void buttonsWheelAndMouseZoomAndPan() {
        try (Page page = open("run.html")) {
            assertEquals(100, page.number(ZOOM_WIDTH));
            page.click(button("Zoom in"));
            page.awaitTrue(ZOOM_WIDTH + " < 99", LIMIT);
            page.click(button("Zoom out"));
            page.awaitTrue(ZOOM_WIDTH + " > 99", LIMIT);

            Page.Box box = page.scrollTo(TIMELINE);
            double x = box.middleX();
            double y = box.middleY();
            page.controlWheel(x, y, -240);
            page.awaitTrue(ZOOM_WIDTH + " < 99", LIMIT);
            double start = page.number("weft.zoomRange()[0]");
            double width = page.number(ZOOM_WIDTH);
            assertTrue(start > 0, "zooms around the mouse");
            page.drag(x, x + 60, y);
            page.awaitTrue("weft.zoomRange()[0] < " + start, LIMIT);
            assertEquals(width, page.number(ZOOM_WIDTH), 1e-6, "panned, not zoomed");

            page.click(button("All"));
            page.awaitTrue(ZOOM_WIDTH + " === 100", LIMIT);
            assertEquals(List.of(), page.consoleErrors());
        }
    }

    @Test
    void theTimelineIsReachedAndReadByKeyboardAlone() throws IOException {
        List<Span> spans = record("run.json").spans();
        try (Page page = open("run.html")) {
            for (int i = 0; !page.isTrue("document.activeElement === " + TIMELINE); i++) {
                assertTrue(i < 20, "the Tab key does not reach the timeline");
                page.key("Tab");
            }
            page.key("+");
            page.awaitTrue(ZOOM_WIDTH + " < 99", LIMIT);
            double start = page.number("weft.zoomRange()[0]");
            page.key("ArrowRight");
            page.awaitTrue("weft.zoomRange()[0] > " + start, LIMIT);
            page.key("-");
            page.key("0");
            page.awaitTrue(ZOOM_WIDTH + " === 100", LIMIT);

            List<?> path = Json.list(page.evaluate(Report.DATA), "runs", 0, "timeline", "critical");
            assertTrue(path.size() > 1, "a critical path");
            for (Object number : path) {
                page.key("n");
                assertShows(page, spans.get(((Long) number).intValue()));
            }
            page.key("p");
            assertShows(page, spans.get(((Long) path.get(path.size() - 2)).intValue()));
            page.key("Escape");
            page.awaitTrue("!" + TIP + ".checkVisibility()", LIMIT);
        }
    }

    private static void assertShows(Page page, Span span) {
        Map<?, ?> said = tooltip(page);
        assertEquals("" + span.rank(), said.get("Rank"));
        assertEquals(span.track(), said.get("Track"));
        assertEquals("rank " + span.of("source"), said.get("Source"));
        assertTrue(page.text(TIP + ".textContent").endsWith("on the critical path"));
    }

    @Test
    void aComparisonListsAllRunsWithTheirNumbers() throws IOException {
        try (Page page = open("compare.html")) {
            assertEquals(
                    List.of("other.json", MARKUP, IMAGE),
                    page.evaluate(
                            "[...document.querySelectorAll('tbody [data-run]')].map(cell =>"
                                    + " cell.innerText.split('\\n')[0])"));
            assertEquals(
                    "other.json and %s are equally fast within the noise (0.0%%).".formatted(IMAGE),
                    page.text("document.querySelector('[data-conclusion]').textContent"));
            double other = record("other.json").number("speedup");
            double sim = record("sim.json").number("speedup");
            assertEquals(
                    List.of(other, sim, other),
                    page.evaluate(
                            "[...document.querySelectorAll('td[data-fact=speedup]')].map(cell =>"
                                    + " Number(cell.dataset.value))"));
        }
    }

    @Test
    void theHeatMapOfASweepAnswersAndItsTableIsTheRecords() throws IOException {
        Object sweep = Json.parse(Files.readString(folder.resolve("sweep.json")));
        List<Double> best =
                Json.list(sweep, "rows").stream()
                        .filter(row -> Boolean.TRUE.equals(Json.at(row, "best")))
                        .map(row -> Json.number(row, "speedup"))
                        .toList();
        try (Page page = open("sweep.html")) {
            assertEquals(
                    best,
                    page.evaluate(
                            "[...document.querySelectorAll('#best td[data-value]')].map(cell =>"
                                    + " Number(cell.dataset.value))"));
            Page.Box map = page.scrollTo("document.getElementById('heat-chart')");
            page.hover(map.x() + 0.4 * map.width(), map.y() + 0.2 * map.height());
            assertTrue(tooltip(page).containsKey("Speedup"), page.text(TIP + ".innerText"));
        }
    }

    @Test
    void markupInLabelsAndFileNamesIsText() {
        double scripts;
        try (Page page = open("run.html")) {
            scripts = page.number("document.scripts.length");
        }
        for (String name : List.of("sim.html", "compare.html")) {
            try (Page page = open(name)) {
                assertEquals(scripts, page.number("document.scripts.length"));
                assertEquals(0, page.number("document.images.length"));
                assertNotEquals("bad", page.text("document.title"));
                assertEquals(page.text(Report.DATA + ".title"), page.text("document.title"));
                assertEquals(List.of(), page.consoleErrors());
            }
        }
        try (Page page = open("sim.html")) {
            assertEquals(MARKUP, page.text("document.querySelector('h1').textContent"));
        }
    }

    @Test
    void darkAndLightDifferAndPaperHasNoButtons() {
        String background = "getComputedStyle(document.body).backgroundColor";
        String buttons =
                "[...document.querySelectorAll('button')].filter(one => one.checkVisibility())"
                        + ".length";
        try (Page page = open("run.html")) {
            String light = page.text(background);
            page.emulate("screen", "dark");
            page.awaitFrames();
            assertNotEquals(light, page.text(background));
            assertTrue(page.number(buttons) > 2);
            page.emulate("print", "dark");
            page.awaitFrames();
            assertEquals(0, page.number(buttons));
            assertEquals("rgb(255, 255, 255)", page.text(background));
        }
    }
}
