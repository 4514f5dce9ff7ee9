package dev.weft.cli.view;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Main;
import dev.weft.cli.console.ExitCode;
import dev.weft.report.JsonText;
import dev.weft.report.RecordMaker;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code weft report --serve}: a page over HTTP until the command is ended. */
class ReportServeTest {

    private static final long DEADLINE_NS = TimeUnit.SECONDS.toNanos(60);

    @TempDir Path folder;

    private Path record(String name) throws IOException {
        String json = new RecordMaker().label("label of " + name).json();
        return Files.writeString(folder.resolve(name), json);
    }

    /** A command that runs until it is ended. */
    private static final class Serving implements AutoCloseable {

        private final StringWriter out = new StringWriter();
        private final StringWriter err = new StringWriter();
        private volatile int code = -1;
        private final Thread thread;

        Serving(String line) {
            thread =
                    Thread.ofPlatform()
                            .start(
                                    () ->
                                            code =
                                                    Main.execute(
                                                            Main.commandLine()
                                                                    .setOut(new PrintWriter(out))
                                                                    .setErr(new PrintWriter(err)),
                                                            line.split(" ")));
        }

        URI address() throws InterruptedException {
            long deadline = System.nanoTime() + DEADLINE_NS;
            while (!out.toString().endsWith("\n")) {
                assertTrue(thread.isAlive() && System.nanoTime() < deadline, err.toString());
                Thread.sleep(2);
            }
            return URI.create(out.toString().strip());
        }

        @Override
        public void close() {
            thread.interrupt();
            try {
                thread.join();
            } catch (InterruptedException e) {
                throw new AssertionError("was to wait for the command's end", e);
            }
        }
    }

    @Test
    void aPageIsServedUntilTheCommandEnds() throws Exception {
        Path run = record("r.json");
        URI address;
        try (Serving serving = new Serving("report --serve " + run)) {
            address = serving.address();
            Answer page = Answer.get(address);
            assertEquals(200, page.code());
            Answer data = Answer.get(address.resolve("data"));
            Object shown = JsonText.parse(data.body());
            assertEquals("label of r.json", JsonText.at(shown, "title"));
            assertEquals(false, JsonText.at(shown, "live"));
            assertEquals(404, Answer.get(address.resolve("r.json")).code(), "no file is");
            record("other.json");
            assertEquals(404, Answer.get(address.resolve("other.json")).code());
        }
        URI gone = address;
        assertThrows(IOException.class, () -> Answer.get(gone));
        assertEquals(
                List.of("other.json", "r.json"),
                ReportCommandTest.files(folder),
                "nothing is written");
    }

    @Test
    void aServedPageMayBeWrittenToo() throws Exception {
        Path run = record("r.json");
        Path html = folder.resolve("x.html");
        try (Serving serving = new Serving("report --quiet --serve " + run + " --report " + html)) {
            assertEquals(200, Answer.get(serving.address()).code());
            assertEquals("run", JsonText.at(ReportCommandTest.page(html), "kind"));
        }
    }

    @Test
    void aWatchedRecordIsShownAsItChanges() throws Exception {
        Path run = folder.resolve("r.json");
        try (Serving serving = new Serving("report --serve --watch " + run)) {
            URI data = serving.address().resolve("data");
            Object waiting = JsonText.parse(Answer.get(data).body());
            assertEquals(true, JsonText.at(waiting, "live"));
            assertEquals("waiting for records", JsonText.at(waiting, "progress.what"));
            record("part");
            Files.move(folder.resolve("part"), run);
            Object shown = JsonText.parse(Answer.get(data).body());
            assertEquals("label of part", JsonText.at(shown, "title"));
        }
    }

    /** Files are written once and a watched page never ends: to ask for both is a mistake. */
    @ParameterizedTest
    @ValueSource(strings = {"--report", "--trace"})
    void aWatchedPageIsNotWritten(String option) throws Exception {
        Path run = record("r.json");
        String line = "report --serve --watch " + run + " " + option + " " + folder.resolve("x");
        try (Serving serving = new Serving(line)) {
            long deadline = System.nanoTime() + DEADLINE_NS;
            while (serving.thread.isAlive() && serving.out.toString().isEmpty()) {
                assertTrue(System.nanoTime() < deadline, "serves or refuses");
                Thread.sleep(2);
            }
            assertFalse(
                    serving.out.toString().startsWith("http"),
                    option + " was ignored and the page is served");
            serving.thread.join();
            assertEquals(ExitCode.USAGE, serving.code);
            assertTrue(serving.err.toString().contains(option), serving.err.toString());
        }
    }
}
