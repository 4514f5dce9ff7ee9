package dev.weft.cli.view;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import dev.weft.cli.Invocation;
import dev.weft.cli.console.ExitCode;
import dev.weft.fabric.World;
import dev.weft.op.AllGatherMatmul;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.report.JsonText;
import dev.weft.report.RecordMaker;
import dev.weft.report.RecordReader;
import dev.weft.report.RunRecord;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.CallLog;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code weft report}: what it makes of records, and what it refuses. */
class ReportCommandTest {

    private static final Pattern DATA =
            Pattern.compile("<script id=\"weft-data\"[^>]*>(.*?)</script", Pattern.DOTALL);
    @TempDir Path folder;

    private Path write(String name, String text) throws IOException {
        return Files.writeString(folder.resolve(name), text);
    }

    private Path record(String name) throws IOException {
        return write(name, new RecordMaker().label("label of " + name).json());
    }

    private Path sweep(String name) throws IOException {
        return write(
                name,
                """
                {"schema": "weft.sweep/1", "weft": "0.2.0", "machine": "<trn2>", "aDtype": "fp16",
                 "outDtype": "fp32", "rhs": "replicated", "rows": [
                 {"m": 8, "k": 8, "n": 8, "ranks": 2, "algorithm": "ring", "splits": null,
                  "chunks": 1, "chunkRows": 4, "lanes": 1, "predictedUs": 12.5, "sequentialUs": 25,
                  "speedup": 2.0, "limitFraction": 0.5, "best": true, "reason": null},
                 {"m": 8, "k": 8, "n": 8, "ranks": 2, "algorithm": "direct", "splits": 4,
                  "reason": "</script>"}]}
                """);
    }

    private static Invocation command(String line) {
        return Invocation.of(line.split(" "));
    }

    private static Invocation report(Object... arguments) {
        List<String> words = new ArrayList<>(List.of("report"));
        for (Object argument : arguments) {
            words.add(argument.toString());
        }
        return Invocation.of(words.toArray(String[]::new));
    }

    private List<String> files() throws IOException {
        return files(folder);
    }

    static List<String> files(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(file -> file.getFileName().toString()).sorted().toList();
        }
    }

    /** The data of a page that was written. */
    static Object page(Path file) throws IOException {
        Matcher data = DATA.matcher(Files.readString(file));
        assertTrue(data.find(), "a page: " + file);
        return JsonText.parse(data.group(1));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "-n 3 --shards 20,0,13 --gk 24 --gn 8 --algorithm mesh-pull --splits-per-rank 3",
                "-n 4 --groups 2 --gm 31 --gk 20 --gn 9 --algorithm ring --label <b>\"x\"&amp;</b>",
                "-n 2 --gm 64 --gk 24 --gn 8 --algorithm direct --rhs column-sharded",
                "-n 2 --gm 0 --gk 24 --gn 8 --algorithm mesh-push --dtype bf16 --out-dtype fp16",
                "-r sim --no-verify -v Ascend910B1 -n 8 --gm 2048 --gk 512 --gn 512 --label sim",
                "-r sim --no-verify -v trn2 -n 2 --gm 0 --gk 512 --gn 512",
                "-r cpu -v cpu-100gbe -n 2 --gm 40 --gk 24 --gn 12",
                "-r sim -v cpu-100gbe -n 2 --gm 40 --gk 24 --gn 12 --verify"
            })
    void aRecordThatACommandWroteIsReadAsItIs(String options) throws IOException {
        Path file = folder.resolve("r.json");
        Invocation run =
                command(
                        "run "
                                + options
                                + " --warmup 1 --iterations 3 --quiet --json "
                                + file
                                + " --data-dir "
                                + folder.resolve("out"));
        assertEquals(0, run.code(), run.err());
        RunRecord read = RecordReader.read(file).run();
        Object written = JsonText.parse(Files.readString(file));
        Object again = JsonText.parse(RecordMaker.json(read));
        double tflops = JsonText.number(written, "tflops");
        assertEquals(tflops, JsonText.number(again, "tflops"), 1e-12 * tflops);
        assertEquals(withoutTflops(written), withoutTflops(again));
        assertEquals(0, report(file, "--trace", folder.resolve("t.json")).code());
        assertEquals(0, report(file).code());
        Object facts = JsonText.at(page(folder.resolve("r.html")), "runs.0.facts");
        assertEquals(JsonText.number(written, "speedup"), JsonText.number(facts, "0.value"));
        assertEquals(JsonText.number(written, "limitFraction"), JsonText.number(facts, "2.value"));
        assertEquals(JsonText.at(written, "overlapEfficiency"), JsonText.at(facts, "1.value"));
    }

    private static Object withoutTflops(Object record) {
        assertTrue(((Map<?, ?>) record).remove("tflops") instanceof Double);
        return record;
    }

    @Test
    void aPageLiesBesideItsRecord() throws IOException {
        Path run = record("my.run.json");
        Invocation made = report(run);
        assertEquals(0, made.code(), made.err());
        Path html = folder.resolve("my.run.html");
        assertEquals(
                "[INFO] Wrote the report to "
                        + html
                        + "\nlabel of my.run.json: Overlap saved 19.0% (+-0.0%): 1.24x as fast as"
                        + " gathering first.\n",
                made.out());
        assertEquals("run", JsonText.at(page(html), "kind"));
        assertEquals("label of my.run.json", JsonText.at(page(html), "title"));
        assertEquals(0, report(record("plain")).code());
        assertEquals(List.of("my.run.html", "my.run.json", "plain", "plain.html"), files());
    }

    @Test
    void aRecordWithoutALabelHasItsFilesName() throws IOException {
        report(write("r.json", new RecordMaker().json()));
        assertEquals("r.json", JsonText.at(page(folder.resolve("r.html")), "runs.0.name"));
    }

    @Test
    void onlyWhatIsAskedForIsWritten() throws IOException {
        Path run = record("r.json");
        Path trace = folder.resolve("t.json");
        Path html = folder.resolve("x.html");
        assertEquals(0, report("--trace", trace, run).code());
        assertEquals(List.of("r.json", "t.json"), files());
        Object events = JsonText.parse(Files.readString(trace));
        assertTrue(JsonText.list(events, "traceEvents").size() > 50, "spans of four ranks");
        assertEquals(0, report(run, "--report", html).code());
        assertEquals(List.of("r.json", "t.json", "x.html"), files());
        Invocation both = report(run, "--report", html, "--trace", trace, "--quiet");
        assertEquals(0, both.code());
        assertEquals("", both.out());
    }

    @Test
    void severalRecordsAreCompared() throws IOException {
        Path html = folder.resolve("all.html");
        Invocation made =
                report(record("b.json"), record("a.json"), record("b.json"), "--report", html);
        assertEquals(0, made.code(), made.err());
        Object page = page(html);
        assertEquals("compare", JsonText.at(page, "kind"));
        assertEquals("3 runs compared", JsonText.at(page, "title"));
        assertEquals("label of a.json", JsonText.at(page, "runs.1.name"), "in the given order");
    }

    @Test
    void aComparisonHasANameOfItsOwn() throws IOException {
        Path html = Path.of("comparison.html").toAbsolutePath();
        assumeFalse(Files.exists(html), () -> html + " is somebody's");
        try {
            Invocation made = report(record("a.json"), record("b.json"));
            String saved = ": Overlap saved 19.0% (+-0.0%): 1.24x as fast as gathering first.\n";
            String winner =
                    "label of a.json and label of b.json are equally fast within the noise (0.0%).";
            assertEquals(
                    "[INFO] Wrote the report to comparison.html\nlabel of a.json"
                            + saved
                            + "label of b.json"
                            + saved
                            + winner
                            + "\n",
                    made.out());
            assertEquals(winner, JsonText.at(page(html), "comparison.sentence"));
            assertEquals("compare", JsonText.at(page(html), "kind"));
        } finally {
            Files.deleteIfExists(html);
        }
    }

    @Test
    void aSweepIsShownAsItIs() throws IOException {
        Path record = sweep("s.json");
        assertEquals(0, report(record).code());
        Object page = page(folder.resolve("s.html"));
        assertEquals("sweep", JsonText.at(page, "kind"));
        assertEquals("Sweep on <trn2>", JsonText.at(page, "title"));
        assertEquals(JsonText.parse(Files.readString(record)), JsonText.at(page, "sweep"));
    }

    @Test
    void sweepsAndRunsAreNotMixed() throws IOException {
        Path sweep = sweep("s.json");
        Path run = record("r.json");
        report(sweep, run).assertRefused("2 records, not all of them runs: expected only run");
        report(run, run, sweep).assertRefused("3 records, not all of them runs: expected");
        report(sweep, sweep).assertRefused("2 records, not all of them runs");
        assertEquals(List.of("r.json", "s.json"), files());
    }

    @Test
    void aTraceIsOfOneRun() throws IOException {
        Path run = record("r.json");
        Path sweep = sweep("s.json");
        Path trace = folder.resolve("t.json");
        report(run, run, "--trace", trace).assertRefused("--trace " + trace + ": expected one run");
        report(sweep, "--trace", trace).assertRefused("--trace " + trace + ": expected one run");
        assertEquals(List.of("r.json", "s.json"), files());
    }

    /** What is refused leaves nothing behind, not even the half that could have been written. */
    @Test
    void aTraceOfSeveralRunsIsRefusedBeforeThePageIsWritten() throws IOException {
        Path run = record("r.json");
        Path html = folder.resolve("x.html");
        Invocation refused =
                report(run, run, "--report", html, "--trace", folder.resolve("t.json"));
        assertEquals(ExitCode.USAGE, refused.code());
        assertEquals(List.of("r.json"), files());
        refused.assertRefused("expected one run record");
    }

    @ParameterizedTest
    @ValueSource(strings = {"--report", "--trace"})
    void aRecordIsNotWrittenOver(String option) throws IOException {
        Path run = record("r.json");
        String before = Files.readString(run);
        Invocation refused = report(run, option, run);
        assertTrue(before.equals(Files.readString(run)), "still the record");
        refused.assertRefused(option + " " + run);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '\u0001',
            value = {
                "--watch|--watch: expected --serve with it",
                "--port 8080|--port 8080: expected --serve with it",
                "--serve --port 65536|--port 65536: expected 0 to 65535",
                "--serve --port -1|--port -1: expected 0 to 65535",
                "--serve --port x|'x': expected a whole number",
                "--report -|--report -: expected a file",
                "--trace -|--trace -: expected a file",
                "--report /nowhere/x.html|--report /nowhere/x.html: expected a file in a folder",
                "--trace /nowhere/x.json|--trace /nowhere/x.json: expected a file in a folder",
                "--report /|--report /: expected a file in a folder",
                "--serve --report /nowhere/x.html|--report /nowhere/x.html: expected a file in",
                "/nowhere/r.json|/nowhere/r.json: no such record",
                "/|/: no such record",
                "--bogus|'--bogus'"
            })
    void wrongUsageIsOneLine(String options, String expected) throws IOException {
        Path run = record("r.json");
        command("report " + run + " " + options).assertRefused(expected);
        assertEquals(List.of("r.json"), files());
    }

    @Test
    void recordsMustBeNamed() {
        report().assertRefused("Missing required parameter");
        report("--serve").assertRefused("Missing required parameter");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '\u0001',
            value = {
                "hello|r.json: is not JSON in line 1",
                "{}|r.json: schema is missing",
                "{\"schema\": \"weft.gather/1\"}|r.json: schema is weft.gather/1: expected"
                        + " weft.run",
                "{\"schema\": \"weft.run/1\", \"schema\": 1}|r.json: is not JSON in line 1",
                "{\"schema\": \"weft.run/1\"}|r.json: problem is missing: expected an object"
            })
    void whatIsNoRecordIsOneLine(String text, String expected) throws IOException {
        report(write("r.json", text)).assertRefused("weft: " + expected);
        report(record("good.json"), folder.resolve("r.json")).assertRefused("weft: " + expected);
        assertEquals(List.of("good.json", "r.json"), files(), "no page of the good one");
    }

    @Test
    void anEmptyFileAndATruncatedOneAreOneLine() throws IOException {
        report(write("r.json", "")).assertRefused("r.json: is not a JSON object");
        String whole = new RecordMaker().json();
        report(write("r.json", whole.substring(0, whole.length() / 2)))
                .assertRefused("r.json: is not JSON in line ");
    }

    /** JSON can name half of a character, which no file can hold. */
    @ParameterizedTest
    @ValueSource(strings = {"\\ud800", "\\udc00x\\ud83d", "\\u0000\\u2028</script>\\u0085"})
    void anyTextInALabelGivesAPageOrOneLine(String label) throws IOException {
        String json = JsonText.with(new RecordMaker().json(), "label", '"' + label + '"');
        Invocation made = report(write("r.json", json));
        if (made.code() == 0) {
            assertEquals("run", JsonText.at(page(folder.resolve("r.html")), "kind"));
        } else {
            made.assertRefused("r.json: label ");
        }
    }

    /** The seed is told by what fails. */
    @Test
    void mutatedRecordsGiveAPageOrOneLine() throws IOException {
        byte[] whole = new RecordMaker().ranks(2, 1).json().getBytes(StandardCharsets.UTF_8);
        Path file = folder.resolve("r.json");
        int pages = 0;
        for (int seed = 0; seed < 25; seed++) {
            Random random = new Random(seed);
            byte[] mutant = whole.clone();
            mutant[random.nextInt(mutant.length)] = (byte) ('0' + random.nextInt(10));
            Files.write(file, mutant);
            Invocation run = report(file, "--quiet");
            String which = "seed " + seed + ": " + run.err();
            assertTrue(run.code() == 0 || run.code() == ExitCode.USAGE, which);
            assertEquals(run.code() == 0 ? 0 : 1, run.err().lines().count(), which);
            pages += run.code() == 0 ? 1 : 0;
        }
        assertTrue(pages > 0 && pages < 25, pages + " pages");
    }

    @Test
    void helpHasExamples() {
        Invocation help = report("--help");
        assertEquals(0, help.code());
        assertTrue(help.out().contains("./weft report run.json"), help.out());
        assertTrue(Invocation.of("--help").out().contains("  report "), "is listed");
    }

    private Path calls(int rank, String name) {
        return folder.resolve(name + "-" + rank + ".json");
    }

    /** Two calls with work between them, on two ranks. */
    private void logCalls(String name, String secondCall) {
        Shards shards = Shards.of(5, 3);
        try (World world = World.threads(2)) {
            world.run(
                    fabric -> {
                        Matrix a =
                                Matrix.allocate(
                                        Arena.ofAuto(), DType.FP32, shards.rows(fabric.rank()), 4);
                        Matrix b = Matrix.allocate(Arena.ofAuto(), DType.FP32, 4, 6);
                        CallLog log = new CallLog(fabric);
                        try (AllGatherMatmul matmul =
                                AllGatherMatmul.on(fabric)
                                        .a(shards, DType.FP32)
                                        .b(b)
                                        .algorithm(Algorithm.RING)
                                        .prepare()) {
                            log.call("first", matmul.call(a).timeline());
                            log.work("between", System.nanoTime());
                            log.call(secondCall, matmul.call(a).timeline());
                            log.write(calls(fabric.rank(), name));
                        } catch (IOException e) {
                            throw new UncheckedIOException(e);
                        }
                    });
        }
    }

    @Test
    void theCallsOfAProgramsRanksAreOnePicture() throws IOException {
        logCalls("layer", "second");
        logCalls("other", "third");
        Path page = folder.resolve("layer.html");
        Path one = calls(1, "layer");
        assertEquals(0, report(one, calls(0, "layer"), "--report", page).code());
        List<?> calls = (List<?>) JsonText.at(page(page), "runs.0.timeline.calls");
        assertEquals(
                List.of("first", "between", "second"),
                calls.stream().map(call -> JsonText.at(call, "name")).toList());
        report(one, one).assertRefused("two records of rank 1: expected one of each rank");
        report(one, calls(0, "other"))
                .assertRefused("call number 2 is third on rank 0 and second on rank 1: expected");
        report(one, record("run.json")).assertRefused("2 records, not all of them runs");
    }
}
