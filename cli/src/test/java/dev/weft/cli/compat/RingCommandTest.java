package dev.weft.cli.compat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Invocation;
import dev.weft.cli.console.ExitCode;
import dev.weft.cli.console.JsonTarget;
import dev.weft.cli.options.CallOptions;
import dev.weft.op.Timeline;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class RingCommandTest {

    private static final String NUMBER = "[0-9.e+-]+";

    @TempDir Path folder;

    private static Invocation ring(String arguments) {
        return Invocation.of(("ring " + arguments).split(" "));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "-n 4 --m 16 --k 96 --n-local 24",
                "-n 8 --m 5 --k 33 --n-local 7 --dtype fp16 --seed 3",
                "-n 3 --m 5 --k 33 --n-local 7 --dtype fp32",
                "-n 1 --m 5 --k 33 --n-local 7",
                "-n 16 --m 8 --k 128 --n-local 8"
            })
    void everyRankPrintsItsLineAndPasses(String arguments) {
        Invocation run = ring(arguments);
        assertEquals(0, run.code(), run.err() + run.out());
        String[] words = arguments.split(" ");
        List<String> lines = run.out().lines().toList();
        assertEquals(Integer.parseInt(words[1]), lines.size());
        for (int rank = 0; rank < lines.size(); rank++) {
            String shape = "[" + words[1] + ", " + words[3] + ", " + words[7] + "]";
            Pattern expected =
                    Pattern.compile(
                            Pattern.quote("[rank " + rank + "] shape=" + shape)
                                    + " max_abs_err="
                                    + NUMBER
                                    + " rel_err="
                                    + NUMBER
                                    + " PASS");
            assertTrue(expected.matcher(lines.get(rank)).matches(), lines.get(rank));
        }
    }

    /** The tutorial's sizes, and the error that it was validated with on every rank. */
    @ParameterizedTest
    @ValueSource(ints = {4, 16})
    void theTutorialsSizesHaveItsError(int ranks) {
        Invocation run = ring("-n " + ranks);
        assertEquals(0, run.code(), run.err() + run.out());
        List<Double> errors =
                run.out()
                        .lines()
                        .filter(line -> line.endsWith("PASS"))
                        .map(line -> Double.valueOf(line.replaceAll(".*rel_err=| PASS", "")))
                        .toList();
        assertEquals(ranks, errors.size(), run.out());
        assertTrue(errors.stream().allMatch(error -> error < 0.003), run.out());
    }

    @Test
    void theOutcomeCanBeWrittenAsJson() throws IOException {
        Path file = folder.resolve("ring.json");
        assertEquals(0, ring("-n 2 --m 4 --k 8 --n-local 3 --quiet --json " + file).code());
        String json = Files.readString(file);
        assertTrue(json.contains("\"schema\" : \"weft.ring/1\""), json);
        assertTrue(json.contains("\"shape\" : [ 2, 4, 3 ]"), json);
        assertTrue(json.contains("\"passed\" : true"), json);
        String printed = ring("-n 2 --m 4 --k 8 --n-local 3 --json -").out();
        assertTrue(printed.startsWith("{") && printed.strip().endsWith("}"), printed);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "-n 0 | --n-ranks 0: expected 1 to 4096",
                "-n 5000 | --n-ranks 5000: expected 1 to 4096",
                "--m 0 | --m 0: expected 1 to",
                "--k -1 | --k -1: expected 1 to",
                "--n-local 0 | --n-local 0: expected 1 to",
                "--dtype fp8 | --dtype: unknown dtype 'fp8'",
                "--launcher mpi | --launcher 'mpi': expected one of threads, processes, joined",
                "--launcher processes --json - | --json - with --launcher processes",
                "--launcher joined --json - | --json - with --launcher joined: expected threads",
                "--launcher joined --deadline 5s | --deadline 5s with --launcher joined",
                "--json / | --json /: expected a file in a folder",
                "--json /dev/null | --json /dev/null: expected a file in a folder",
                "--json /nowhere/r.json | --json /nowhere/r.json: expected a file in a folder"
            })
    void wrongUsageIsOneLine(String arguments, String expected) {
        ring(arguments).assertRefused(expected);
    }

    @Test
    void aFailureIsToldInOneLine() {
        StringWriter text = new StringWriter();
        PrintWriter err = new PrintWriter(text);
        assertEquals(0, CallOptions.exitCode(err, List.of()));
        assertEquals("", text.toString());
        assertEquals(ExitCode.FAILED, CallOptions.exitCode(err, List.of("rank 1", "rank 2")));
        assertEquals(
                List.of("weft: verification failed (rank 1; and 1 more)"),
                text.toString().lines().toList());
    }

    @Test
    void whatCannotBeWrittenLeavesNothing() throws IOException {
        Path file = folder.resolve("r.json");
        JsonTarget target = new JsonTarget(file.toString(), new PrintWriter(new StringWriter()));
        IOException full = new IOException("no space");
        IOException told =
                assertThrows(
                        IOException.class,
                        () ->
                                target.write(
                                        json -> {
                                            throw full;
                                        }));
        assertEquals("cannot write " + file + ": no space", told.getMessage());
        assertSame(full, told.getCause());
        try (Stream<Path> left = Files.list(folder)) {
            assertEquals(List.of(), left.toList());
        }
    }

    @ParameterizedTest
    @ValueSource(floats = {9f, Float.NaN, Float.POSITIVE_INFINITY})
    void oneWrongElementFails(float wrong) {
        try (Arena arena = Arena.ofConfined()) {
            Matrix expected = Matrix.allocate(arena, DType.FP32, 6, 4);
            new NormalData(1, 1).fill(expected);
            Matrix actual = Matrix.allocate(arena, DType.FP32, 6, 4);
            actual.copyFrom(expected);
            RingRun.Report right =
                    RingRun.judge(1, 2, actual, expected, new Timeline(1, 0, 5, List.of()));
            assertTrue(right.passed());
            assertEquals(0, right.relErr());
            actual.set(5, 3, wrong);
            RingRun.Report report =
                    RingRun.judge(1, 2, actual, expected, new Timeline(1, 0, 5, List.of()));
            assertFalse(report.passed());
            assertTrue(report.line().startsWith("[rank 1] shape=[2, 3, 4] max_abs_err="));
            assertTrue(report.line().endsWith("FAIL"), report.line());
        }
    }
}
