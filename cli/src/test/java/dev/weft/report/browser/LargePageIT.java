package dev.weft.report.browser;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A report with more than half a million spans. */
class LargePageIT {

    private static final Duration LIMIT = Duration.ofSeconds(60);

    @TempDir Path folder;

    /** How long it takes is printed, not asserted: machines differ. */
    @Test
    @Tag("long")
    void sixtyFourRanksOf128ChunksAnswerTheMouse() throws Exception {
        try (Chromium chromium = Chromium.start();
                Page page = chromium.page()) {
            Weft.run(
                    folder,
                    "run -r sim --no-verify -v h200-nvlink8 -n 64 --gm 131072 --gk 1024 --gn 1024"
                            + " --splits-per-rank 128 --algorithm mesh-push --report large.html");
            page.beforeScripts(
                    "const look = () => { if (window.weft?.ready) { window.readyMs ="
                            + " performance.now(); } else { setTimeout(look, 1); } }; look();");
            page.openReport(folder.resolve("large.html").toUri());
            page.awaitTrue("window.readyMs > 0", LIMIT);
            double ready = page.number("window.readyMs");
            double spans = page.number(Report.DATA + ".runs[0].timeline.spanCount");
            assertTrue(spans > 64 * 63 * 128, spans + " spans");

            double x = page.scrollTo(ReportPageIT.TIMELINE).middleX();
            double y =
                    page.number(
                            "Array.from({length: innerHeight}, (_, y) => y).find(y =>"
                                    + " weft.spanAt("
                                    + x
                                    + ", y) !== null)");
            long start = System.nanoTime();
            page.hover(x, y);
            page.awaitTrue(ReportPageIT.TIP + ".checkVisibility()", LIMIT);
            long hovered = System.nanoTime();
            page.controlWheel(x, y, -240);
            page.awaitTrue(ReportPageIT.ZOOM_WIDTH + " < 99", LIMIT);
            page.awaitFrames();
            long zoomed = System.nanoTime();
            System.out.printf(
                    "64 ranks x 128 chunks, %,.0f spans, %,d bytes: ready %.0f ms after opening,"
                            + " hover answered in %.0f ms, zoom drawn in %.0f ms%n",
                    spans,
                    Files.size(folder.resolve("large.html")),
                    ready,
                    (hovered - start) / 1e6,
                    (zoomed - hovered) / 1e6);
            assertEquals(List.of(), page.consoleErrors());
        }
    }
}
