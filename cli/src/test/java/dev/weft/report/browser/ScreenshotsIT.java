package dev.weft.report.browser;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;

/** Writes the pictures of the documentation; {@code scripts/screenshots} runs it. */
@EnabledIfSystemProperty(
        named = "weft.screenshots",
        matches = ".+",
        disabledReason = "writes pictures for the documentation: run scripts/screenshots")
class ScreenshotsIT extends InChromium {

    private static final int WIDTH = 1280;
    private static final Duration LIMIT = Duration.ofSeconds(300);
    private static final long MOST_BYTES = 400 << 10;

    @TempDir static Path folder;

    private static Path pictures;

    @BeforeAll
    static void start() throws IOException {
        pictures = Files.createDirectories(Path.of(System.getProperty("weft.screenshots")));
    }

    private static void picture(URI page, String name, String scheme, int mostHeight)
            throws IOException {
        try (Page shown = chromium.page()) {
            shown.emulate("screen", scheme);
            shown.size(WIDTH, mostHeight);
            shown.openReport(page);
            write(shown, name, mostHeight);
        }
    }

    private static void write(Page page, String name, int mostHeight) throws IOException {
        Path file = pictures.resolve(name);
        page.screenshot(file, WIDTH, mostHeight);
        assertEquals(List.of(), page.consoleErrors());
        assertTrue(Files.size(file) < MOST_BYTES, name + ": " + Files.size(file) + " bytes");
    }

    private static URI page(String name) {
        return folder.resolve(name).toUri();
    }

    private static void run(String label, String words) throws Exception {
        List<String> arguments = new ArrayList<>(List.of(words.split(" ")));
        arguments.addAll(List.of("--label", label));
        Weft.run(folder, arguments);
    }

    /** Of a run that was measured just before: its record is there already. */
    @Test
    void aMeasuredRun() throws Exception {
        Path record = Path.of(System.getProperty("weft.screenshots"), "run.json");
        Weft.run(folder, List.of("report", record.toString(), "--report", "run.html"));
        picture(page("run.html"), "run.png", "light", 1180);
    }

    /** Simulated: the same picture whoever takes it. */
    @Test
    void aSimulatedRunInTheDark() throws Exception {
        run(
                "Eight H200 on one NVSwitch",
                "run -r sim --no-verify -v h200-nvlink8 -n 8 --gm 16384 --gk 4096 --gn 2048 --report"
                        + " dark.html");
        picture(page("dark.html"), "run-dark.png", "dark", 1400);
    }

    @Test
    void aTimelineOfSixtyFourRanks() throws Exception {
        run(
                "64 ranks of 128 chunks",
                "run -r sim --no-verify -v h200-nvlink8 -n 64 --gm 131072 --gk 8192 --gn 8192"
                        + " --splits-per-rank 128 --algorithm mesh-push --report large.html");
        picture(page("large.html"), "timeline-64.png", "light", 1720);
    }

    @Test
    void aComparison() throws Exception {
        for (String algorithm : List.of("mesh-push", "ring", "sequential")) {
            run(
                    algorithm,
                    "run -r sim --no-verify -v h200-nvlink8 -n 8 --gm 16384 --gk 4096 --gn 4096 --algorithm "
                            + algorithm
                            + " --json "
                            + algorithm
                            + ".json");
        }
        Weft.run(folder, "report mesh-push.json ring.json sequential.json --report compare.html");
        picture(page("compare.html"), "compare.png", "light", 1300);
    }

    @Test
    void aSweep() throws Exception {
        Weft.run(
                folder,
                "sweep -v h200-nvlink8 --gm 1024..65536 --gk 4096 --gn 1024..16384 -n 8"
                        + " --splits 4,16,64 --algorithm mesh-push,ring,sequential"
                        + " --report sweep.html");
        picture(page("sweep.html"), "sweep.png", "light", 1220);
    }

    /** In the midst of a run, which is then ended: only the picture is wanted. */
    @Test
    void aLivePage() throws Exception {
        String command =
                "run -n 4 --gm 2048 --gk 1024 --gn 512 --algorithm mesh-pull --iterations 200"
                        + " --watch --data-dir out";
        try (Weft weft = Weft.start(folder, List.of(command.split(" ")));
                Page page = chromium.page()) {
            page.size(WIDTH, 1050);
            page.openReport(weft.address());
            page.awaitTrue(
                    "document.querySelector('[data-view=pipelined]')"
                            + " && document.querySelector('progress')?.value > 40",
                    LIMIT);
            write(page, "live.png", 1050);
        }
    }
}
