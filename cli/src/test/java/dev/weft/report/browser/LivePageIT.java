package dev.weft.report.browser;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Pages that the command serves while it runs, or of a record that is there. */
class LivePageIT extends InChromium {

    private static final Duration LIMIT = Duration.ofSeconds(180);
    private static final String STATE = "document.querySelector('[data-verdict]')?.dataset.verdict";
    private static final String RUN =
            "run -n 2 --gm 64 --gk 32 --gn 32 --algorithm mesh-pull --engine scalar --data-dir out"
                    + " --watch";

    @TempDir static Path folder;

    private static Weft start(String words) throws IOException {
        return Weft.start(folder, List.of(words.split(" ")));
    }

    private static void assertAskedOnlyFor(URI data, Page page) {
        assertEquals(
                List.of(),
                page.requests().stream().filter(asked -> !asked.equals(data.toString())).toList());
    }

    /** Long enough that a page which is opened at once sees it under way. */
    @Test
    void aRunIsSeenUnderWayAndAtItsEnd() throws Exception {
        try (Weft weft = start(RUN + " --iterations 500 --json live.json");
                Page page = chromium.page()) {
            URI address = weft.address();
            page.openReport(address);
            page.awaitTrue(STATE + " === 'running'", LIMIT);
            page.awaitTrue("document.querySelector('progress').value > 0", LIMIT);
            page.awaitTrue("document.querySelector('[data-view=pipelined]') !== null", LIMIT);
            assertTrue(weft.isRunning());

            page.awaitTrue(STATE + " === 'passed'", LIMIT);
            page.awaitTrue(
                    "document.getElementById('progress').textContent === 'Finished.'", LIMIT);
            weft.awaitSuccess();
            Report.of(folder.resolve("live.json")).assertShownOn(page);
            assertEquals(List.of(), page.consoleErrors());
            assertAskedOnlyFor(address.resolve("data"), page);
        }
    }

    @Test
    void aPageOutlivesACommandThatIsGone() throws Exception {
        try (Page page = chromium.page()) {
            try (Weft weft = start(RUN + " --iterations 100000")) {
                page.openReport(weft.address());
                page.awaitTrue("document.querySelector('[data-view=pipelined]') !== null", LIMIT);
            }
            page.awaitTrue(
                    "document.getElementById('progress').textContent.includes('has ended')", LIMIT);
            assertFalse(page.text("document.getElementById('views').innerText").isBlank());
        }
    }

    @Test
    void aRecordIsServedAndNothingElse() throws Exception {
        Weft.run(
                folder,
                "run -r sim --no-verify -v h200-nvlink8 -n 4 --gm 4096 --gk 512 --gn 512 --json served.json");
        try (Weft weft = start("report --serve served.json");
                Page page = chromium.page()) {
            URI address = weft.address();
            page.openReport(address);
            Report.of(folder.resolve("served.json")).assertShownOn(page);
            assertEquals(List.of(), page.consoleErrors());
            assertAskedOnlyFor(address.resolve("data"), page);

            assertEquals(200, status(page, "data"));
            for (String other : List.of("../", "../data", "served.json", "../served.json", "x/")) {
                assertEquals(404, status(page, other), other);
            }
        }
    }

    private static double status(Page page, String address) {
        return page.number("fetch('" + address + "').then(answer => answer.status)");
    }
}
