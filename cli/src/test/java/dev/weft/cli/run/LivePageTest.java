package dev.weft.cli.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Main;
import dev.weft.cli.console.Console;
import dev.weft.cli.console.Progress;
import dev.weft.cli.message.RecordBytes;
import dev.weft.cli.options.RunRequest;
import dev.weft.cli.view.Answer;
import dev.weft.cli.view.LivePage;
import dev.weft.cli.view.LiveProgress;
import dev.weft.plan.Hosts;
import dev.weft.report.JsonText;
import dev.weft.report.RecordMaker;
import dev.weft.report.ShownRun;
import dev.weft.trace.Timeline;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** What a browser gets while something is under way. */
class LivePageTest {

    private static final Pattern ADDRESS = Pattern.compile("Watch it at (http://\\S+/)");
    private static final long DEADLINE_NS = 60_000_000_000L;

    @TempDir Path folder;

    private final StringWriter out = new StringWriter();
    private final Console console = new Console(new PrintWriter(out), false);
    private final StringWriter errors = new StringWriter();
    private final PrintWriter err = new PrintWriter(errors);

    private static URI data(StringWriter printed) {
        Matcher address = ADDRESS.matcher(printed.toString());
        assertTrue(address.find(), printed.toString());
        return URI.create(address.group(1)).resolve("data");
    }

    private static Object get(URI data) throws IOException {
        Answer answer = Answer.get(data);
        assertEquals(200, answer.code());
        return JsonText.parse(answer.body());
    }

    private Object get() throws IOException {
        return get(data(out));
    }

    /** Whoever has looked is waited for. */
    private void end(LivePage page) throws IOException {
        page.ended((String) null);
        assertEquals(true, JsonText.at(get(), "progress.ended"));
    }

    private static List<?> samples(Object page) {
        return JsonText.list(page, "runs.0.views.3.samplesUs");
    }

    @Test
    void nobodyWatchesUnlessAsked() {
        assertNull(LivePage.open(false, "t", console, err));
        assertEquals("", out.toString());
    }

    @Test
    void whatIsToldIsThereWhenAskedFor() throws IOException {
        try (LivePage page = LivePage.open(true, "my <run>", console, err)) {
            Object start = get();
            assertEquals("my <run>", JsonText.at(start, "title"));
            assertEquals(true, JsonText.at(start, "live"));
            assertEquals("starting", JsonText.at(start, "progress.what"));
            assertEquals(List.of(), JsonText.at(start, "runs"));
            page.progress("measuring", 17, 40);
            assertEquals(
                    Arrays.asList("measuring", 17L, 40L, false, null),
                    new ArrayList<>(((Map<?, ?>) JsonText.at(get(), "progress")).values()));
            page.show(() -> new RecordMaker().label("so far").shown());
            assertEquals("so far", JsonText.at(get(), "runs.0.name"));
            assertEquals(17, JsonText.whole(get(), "progress.done"), "still");
            page.ended(() -> new RecordMaker().label("at last").shown());
            Object end = get();
            assertEquals(true, JsonText.at(end, "progress.ended"));
            assertNull(JsonText.at(end, "progress.failed"));
            assertEquals("at last", JsonText.at(end, "runs.0.name"));
            assertEquals("passed", JsonText.at(end, "runs.0.verdict.state"));
        }
        assertThrows(IOException.class, this::get, "gone with the command");
    }

    @Test
    void everythingToldIsANewVersion() throws IOException {
        try (LivePage page = LivePage.open(true, "t", console, err)) {
            List<Runnable> told =
                    List.of(
                            () -> page.progress("a", 1, 2),
                            () -> page.progress("a", 2, 2),
                            () -> page.show(() -> new RecordMaker().shown()),
                            () -> page.show(json -> json.writeStringField("machine", "m")),
                            () -> page.ended("no luck"));
            for (Runnable news : told) {
                String tag = Answer.get(data(out)).headers().get("etag");
                assertEquals(304, Answer.get(data(out), "If-None-Match: " + tag).code());
                news.run();
                Answer next = Answer.get(data(out), "If-None-Match: " + tag);
                assertEquals(200, next.code());
                assertNotEquals(tag, next.headers().get("etag"));
            }
            assertEquals("no luck", JsonText.at(get(), "progress.failed"));
            assertEquals("sweep", JsonText.at(get(), "kind"));
            assertEquals(Map.of("machine", "m"), JsonText.at(get(), "sweep"));
        }
    }

    @Test
    void pagesAreMadeForThoseWhoAskAlone() throws IOException {
        AtomicInteger made = new AtomicInteger();
        ShownRun run = new RecordMaker().shown();
        try (LivePage page = LivePage.open(true, "t", console, err)) {
            for (int i = 0; i < 10; i++) {
                page.show(
                        () -> {
                            made.incrementAndGet();
                            return run;
                        });
            }
            assertEquals(0, made.get(), "ranks that measure are left in peace");
            get();
            assertEquals(1, made.get());
            end(page);
        }
    }

    /** Whoever has looked gets to see the end, and only then the command ends. */
    @Test
    void anEarlyEndIsToldToThoseWhoLook() throws Exception {
        LivePage page = LivePage.open(true, "t", console, err);
        page.progress("measuring", 1, 9);
        assertEquals(false, JsonText.at(get(), "progress.ended"));
        Thread closing = Thread.ofPlatform().start(page::close);
        long deadline = System.nanoTime() + DEADLINE_NS;
        Object seen = get();
        while (!JsonText.at(seen, "progress.ended").equals(true)) {
            assertTrue(System.nanoTime() < deadline, "the end is shown");
            seen = get();
        }
        assertEquals("the command has ended early", JsonText.at(seen, "progress.failed"));
        closing.join();
        assertThrows(IOException.class, this::get);
    }

    private static RunCommand parsed(String options) {
        RunCommand command = new RunCommand();
        new CommandLine(command).parseArgs(options.split(" "));
        return command;
    }

    private LiveRun liveRun(LivePage page) {
        RunCommand command = parsed("-n 2 --gm 64 --gk 32 --gn 16 --algorithm mesh-pull");
        RunRequest request =
                new RunRequest(command.options.problem.spec(), command.options.executionSpec());
        return LiveRun.on(page, request, Hosts.one(2), 2);
    }

    private static RankReport report(int rank, int rounds) {
        return report(rank, rounds, 5000);
    }

    /**
     * @param startNs when the call of its timeline began
     */
    private static RankReport report(int rank, int rounds, long startNs) {
        List<RoundTimes> times =
                LongStream.rangeClosed(1, rounds)
                        .map(i -> 1_000_000 * i)
                        .mapToObj(ns -> new RoundTimes(ns, ns, ns, ns / 4, ns, -1, 0))
                        .toList();
        int peer = 1 - rank;
        Timeline timeline =
                new Timeline(
                        rank,
                        startNs,
                        900,
                        List.of(
                                new Timeline.Track(
                                        "lane-0",
                                        List.of(
                                                new Timeline.Span(
                                                        Timeline.Kind.TRANSFER,
                                                        peer,
                                                        peer,
                                                        rank,
                                                        0,
                                                        0,
                                                        32,
                                                        2048,
                                                        0,
                                                        400)))));
        return new RankReport(
                "mesh-pull",
                "cpu",
                "vector",
                1,
                1,
                32,
                times,
                false,
                false,
                false,
                List.of(),
                List.of(),
                timeline);
    }

    /** Ranks tell one after the other: a page never shows a rank beside another's older call. */
    @Test
    void ranksTellTheirRoundsAndThePageShowsThoseThatAllHave() throws IOException {
        try (LivePage page = LivePage.open(true, "t", console, err)) {
            LiveRun live = liveRun(page);
            live.round(1, report(1, 3));
            assertEquals(List.of(), JsonText.at(get(), "runs"), "one of two");
            live.round(0, report(0, 3));
            Object seen = get();
            assertEquals(List.of(1000.0, 2000.0, 3000.0), samples(seen));
            assertEquals("running", JsonText.at(seen, "runs.0.verdict.state"));
            assertEquals(List.of(), JsonText.at(seen, "runs.0.advice"), "too early to advise");
            assertEquals(0, JsonText.whole(seen, "runs.0.timeline.ranks.0.rank"));
            assertEquals(1, JsonText.whole(seen, "runs.0.timeline.ranks.1.rank"));
            assertEquals(1, JsonText.whole(seen, "runs.0.links.links.0.to"), "rank 1 pulled");
            live.round(0, report(0, 5));
            assertEquals(3, samples(get()).size(), "the other one is still at it");
            live.round(1, report(1, 5));
            assertEquals(5, samples(get()).size());
            end(page);
        }
    }

    @Test
    void theTimelineIsOfOneCall() throws IOException {
        try (LivePage page = LivePage.open(true, "t", console, err)) {
            LiveRun live = liveRun(page);
            live.round(0, report(0, 3, 5000));
            live.round(1, report(1, 3, 5100));
            assertEquals(1000, JsonText.whole(get(), "runs.0.timeline.endNs"));
            live.round(0, report(0, 4, 80_000_000));
            assertEquals(1000, JsonText.whole(get(), "runs.0.timeline.endNs"), "not 80 ms");
            live.round(1, report(1, 4, 80_000_200));
            assertEquals(1100, JsonText.whole(get(), "runs.0.timeline.endNs"));
            end(page);
        }
    }

    /** What a terminal was told. */
    private static final class Told extends Progress {

        final List<String> calls = new ArrayList<>();

        Told() {
            super(false);
        }

        @Override
        public synchronized void begin(String what, long total) {
            calls.add("begin " + what + " " + total);
        }

        @Override
        public synchronized void advance(long done) {
            calls.add("advance " + done);
        }

        @Override
        public synchronized void continueWith(String what, long done, long total) {
            calls.add("continue " + what + " " + done + " " + total);
        }

        @Override
        public synchronized void end() {
            calls.add("end");
        }
    }

    @Test
    void theTerminalIsToldAsWell() throws IOException {
        Told terminal = new Told();
        try (LivePage page = LivePage.open(true, "t", console, err)) {
            LiveProgress live = new LiveProgress(terminal, page);
            live.begin("measuring", 40);
            live.advance(7);
            assertEquals(7, JsonText.whole(get(), "progress.done"));
            assertEquals(40, JsonText.whole(get(), "progress.of"));
            live.continueWith("verifying", 2, 3);
            assertEquals("verifying", JsonText.at(get(), "progress.what"));
            live.advance(3);
            assertEquals(3, JsonText.whole(get(), "progress.of"));
            live.ofRank(1).advance(1);
            live.end();
            end(page);
        }
        assertEquals(
                List.of(
                        "begin measuring 40",
                        "advance 7",
                        "begin verifying 3",
                        "advance 2",
                        "advance 3",
                        "end"),
                terminal.calls,
                "of the first rank alone");
    }

    @Test
    void ranksInProcessesTellByFiles() throws IOException {
        RecordBytes.write(report(1, 4), folder.resolve("live-1"));
        assertEquals(4, RankReport.LIVE.take(folder, 1).orElseThrow().times().size());
        assertTrue(RankReport.LIVE.take(folder, 1).isEmpty(), "each once");
        assertTrue(RankReport.LIVE.take(folder, 0).isEmpty());
        assertFalse(Files.exists(folder.resolve("live-1")));
    }

    /** What was seen of one run. */
    private record Watched(TreeSet<Integer> sampleCounts, boolean underWay, Object end) {}

    /** Longer ones until one is slow enough to be seen growing, whatever the machine does. */
    @Test
    void aRunIsSeenGrowingAndEndsWithItsVerdict() throws Exception {
        for (int iterations = 20; ; iterations *= 3) {
            Watched seen = watch(iterations);
            if (seen.end != null) {
                assertEquals(true, JsonText.at(seen.end, "progress.ended"));
                assertNull(JsonText.at(seen.end, "progress.failed"));
                assertEquals("passed", JsonText.at(seen.end, "runs.0.verdict.state"));
                assertEquals("my label", JsonText.at(seen.end, "runs.0.name"));
                assertEquals(iterations, samples(seen.end).size());
                assertEquals(2, JsonText.list(seen.end, "runs.0.timeline.ranks").size());
            }
            if (seen.underWay && seen.sampleCounts.size() > 1) {
                return;
            }
            assertTrue(iterations < 1_000_000, "seen: " + seen.sampleCounts);
        }
    }

    private Watched watch(int iterations) throws Exception {
        StringWriter printed = new StringWriter();
        int[] code = {-1};
        String command =
                "run --watch -n 2 --gm 64 --gk 32 --gn 16 --algorithm mesh-pull --warmup 1"
                        + " --iterations "
                        + iterations
                        + " --data-dir "
                        + folder.resolve("out");
        List<String> arguments = new ArrayList<>(List.of(command.split(" ")));
        arguments.addAll(List.of("--label", "my label"));
        Thread running =
                Thread.ofPlatform()
                        .start(
                                () ->
                                        code[0] =
                                                Main.execute(
                                                        Main.commandLine()
                                                                .setOut(new PrintWriter(printed)),
                                                        arguments.toArray(String[]::new)));
        Watched seen = look(running, printed);
        running.join();
        assertEquals(0, code[0], printed.toString());
        return seen;
    }

    private static Watched look(Thread running, StringWriter printed) throws Exception {
        TreeSet<Integer> counts = new TreeSet<>();
        boolean underWay = false;
        long deadline = System.nanoTime() + DEADLINE_NS;
        while (!ADDRESS.matcher(printed.toString()).find()) {
            assertTrue(running.isAlive() && System.nanoTime() < deadline, printed.toString());
            Thread.sleep(2);
        }
        while (true) {
            Object page;
            try {
                page = get(data(printed));
            } catch (IOException e) {
                // A run that is over before anybody has looked does not wait for it.
                assertTrue(counts.isEmpty() && !underWay, "was told of the end");
                return new Watched(counts, false, null);
            }
            long done = JsonText.whole(page, "progress.done");
            underWay |=
                    JsonText.at(page, "progress.what").equals("measuring")
                            && done > 0
                            && done < JsonText.whole(page, "progress.of");
            if (!JsonText.list(page, "runs").isEmpty()) {
                int count = samples(page).size();
                assertTrue(counts.isEmpty() || count >= counts.last(), "only more");
                counts.add(count);
            }
            if (JsonText.at(page, "progress.ended").equals(true)) {
                return new Watched(counts, underWay, page);
            }
            assertTrue(System.nanoTime() < deadline, "ends");
            Thread.sleep(2);
        }
    }
}
