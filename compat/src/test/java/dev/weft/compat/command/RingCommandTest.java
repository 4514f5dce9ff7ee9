package dev.weft.compat.command;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Invocation;
import dev.weft.cli.Main;
import dev.weft.cli.console.ExitCode;
import dev.weft.cli.console.TextTarget;
import dev.weft.report.Verification;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

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
                "-n 4 --m 16 --k 96 --n-local 24 --lnc 2",
                "-n 16 --m 8 --k 128 --n-local 8"
            })
    void everyRankPrintsItsLineAndPasses(String arguments) {
        Invocation run = ring(arguments);
        assertEquals(0, run.code(), run.err() + run.out());
        String[] words = arguments.split(" ");
        List<String> lines = run.out().lines().filter(line -> line.startsWith("[rank ")).toList();
        assertEquals(Integer.parseInt(words[1]), lines.size());
        run.assertPrints(Invocation.VIEWS);
        run.assertPrints("[SUCCESS] weft ring (cpu, ring, ");
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
    @Test
    void theTutorialsSizesHaveItsError() {
        assertErrorOfTheTutorial(4, "");
    }

    /** Its ranks and its K, with fewer rows and columns. */
    @Test
    void sixteenRanksHaveItsError() {
        assertErrorOfTheTutorial(16, " --m 16 --n-local 64");
    }

    @Test
    @Tag("long")
    void theTutorialsSizesHaveItsErrorOnSixteenRanks() {
        assertErrorOfTheTutorial(16, "");
    }

    /** By the tutorial's own command: the variables that it is started with. */
    private static void assertErrorOfTheTutorial(int ranks, String sizes) {
        Map<String, String> variables =
                Map.of(
                        "NEURON_CC_FLAGS", "--lnc=2",
                        "NEURON_LOGICAL_NC_CONFIG", "2",
                        "NEURONCORE_NUM_DEVICES", Integer.toString(ranks));
        Invocation run = ring(variables, "--warmup 0 --iterations 1" + sizes);
        assertEquals(0, run.code(), run.err() + run.out());
        run.assertPrints(
                "[INFO] %s ranks (threads) on the CPU: a ring, ".formatted(ranks),
                ", lnc 2 (-n %s by NEURONCORE_NUM_DEVICES, ".formatted(ranks)
                        + "--lnc 2 by NEURON_LOGICAL_NC_CONFIG and NEURON_CC_FLAGS)",
                "2 compute + 1 comm threads per rank");
        List<Double> errors =
                run.out()
                        .lines()
                        .filter(line -> line.endsWith("PASS"))
                        .map(line -> Double.valueOf(line.replaceAll(".*rel_err=| PASS", "")))
                        .toList();
        assertEquals(ranks, errors.size(), run.out());
        assertTrue(errors.stream().allMatch(error -> error < 0.003), run.out());
    }

    private static Invocation ring(Map<String, String> variables, String arguments) {
        CommandLine parser = Main.commandLine("ring");
        RingCommand command = parser.getSubcommands().get("ring").getCommand();
        command.environment = new NeuronEnvironment(variables);
        return Invocation.on(parser, ("ring " + arguments).strip().split(" "));
    }

    private static final String TINY = "--m 4 --k 8 --n-local 3 --warmup 0 --iterations 1";

    @Test
    void optionsComeBeforeVariables() {
        Map<String, String> wrong =
                Map.of("NEURONCORE_NUM_DEVICES", "many", "NEURON_LOGICAL_NC_CONFIG", "9");
        Invocation run = ring(wrong, "-n 2 --lnc 1 " + TINY);
        assertEquals(0, run.code(), run.err());
        run.assertPrints("2 ranks (threads)", ", lnc 1\n");
        Invocation compiled = ring(Map.of("NEURON_CC_FLAGS", "-O1 --lnc 2 -v"), "-n 2 " + TINY);
        assertEquals(0, compiled.code(), compiled.err());
        compiled.assertPrints(", lnc 2 (--lnc 2 by NEURON_CC_FLAGS)\n");
        Invocation none = ring(Map.of("NEURON_CC_FLAGS", "-O1"), "-n 2 " + TINY);
        none.assertPrints(", lnc 1\n");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "NEURONCORE_NUM_DEVICES | 0 | NEURONCORE_NUM_DEVICES=0: expected 1 to 4096",
                "NEURONCORE_NUM_DEVICES | 4x | NEURONCORE_NUM_DEVICES=4x: expected 1 to 4096",
                "NEURON_LOGICAL_NC_CONFIG | 3 | NEURON_LOGICAL_NC_CONFIG=3: expected 1 to 2",
                "NEURON_CC_FLAGS | --lnc=3 | NEURON_CC_FLAGS with --lnc=3: expected 1 to 2",
                "NEURON_CC_FLAGS | -O1 --lnc | NEURON_CC_FLAGS with --lnc=: expected 1 to 2"
            })
    void wrongVariablesAreOneLine(String name, String value, String expected) {
        ring(Map.of(name, value), TINY).assertRefused(expected);
    }

    @Test
    void variablesThatDifferAreRefused() {
        Map<String, String> unlike =
                Map.of("NEURON_LOGICAL_NC_CONFIG", "1", "NEURON_CC_FLAGS", "--lnc=2");
        ring(unlike, TINY)
                .assertRefused(
                        "NEURON_LOGICAL_NC_CONFIG=1 and NEURON_CC_FLAGS with --lnc=2: expected the"
                                + " same number");
    }

    @Test
    void theOutcomeCanBeWrittenAsJson() throws IOException {
        Path file = folder.resolve("ring.json");
        assertEquals(0, ring("-n 2 --m 4 --k 8 --n-local 3 --quiet --json " + file).code());
        String json = Files.readString(file);
        assertTrue(json.contains("\"schema\" : \"weft.ring/1\""), json);
        assertTrue(json.contains("\"shape\" : [ 2, 4, 3 ]"), json);
        assertTrue(json.contains("\"passed\" : true"), json);
        assertTrue(json.contains("\"bitwiseEqualToUnfused\" : true"), json);
        assertTrue(json.contains("\"launcher\" : \"threads\""), json);
        for (String view : List.of("computeOnly", "commOnly", "sequential", "pipelined")) {
            assertTrue(json.contains("\"" + view + "\" : {"), view + " in " + json);
        }
        assertTrue(json.contains("\"speedup\" : "), json);
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
                "--launcher ssh | --launcher 'ssh': expected one of threads, processes, mpi, joined",
                "--lnc 3 | lnc 3: expected 1 or 2",
                "--hostfile h.txt | --hostfile h.txt is for mpirun: it needs --launcher mpi",
                "-r npu | --run-mode 'npu': expected one of auto, cpu, cuda, sim",
                "-r sim | --run-mode sim needs -v: expected one of",
                "-v nothing | --soc-version: unknown machine 'nothing'",
                "-r sim -v trn2 --launcher processes | --launcher is for real ranks",
                "-r sim -v nothing | --soc-version: unknown machine 'nothing'",
                "--warmup -1 | --warmup -1: expected 0 to",
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
        assertEquals(0, SourceCommand.exitCode(err, List.of()));
        assertEquals("", text.toString());
        assertEquals(ExitCode.FAILED, SourceCommand.exitCode(err, List.of("rank 1", "rank 2")));
        assertEquals(
                List.of("weft: verification failed (rank 1; and 1 more)"),
                text.toString().lines().toList());
    }

    @Test
    void whatCannotBeWrittenLeavesNothing() throws IOException {
        Path file = folder.resolve("r.json");
        TextTarget target = TextTarget.json(file.toString(), new PrintWriter(new StringWriter()));
        IOException full = new IOException("no space");
        IOException told =
                assertThrows(
                        IOException.class,
                        () ->
                                target.writeJson(
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
    @ValueSource(floats = {900f, Float.NaN, Float.POSITIVE_INFINITY})
    void oneWrongElementFails(float wrong) {
        try (Arena arena = Arena.ofConfined()) {
            RingCommand ring = new RingCommand();
            ProductRun run = Products.run(ring, 2, 3, 5, 8, arena);
            Products products = Products.of(run, arena);
            SourceReport right = products.report(run, true);
            assertTrue(right.passed());
            assertTrue(ring.line(right).endsWith("PASS"), ring.line(right));
            products.c().set(5, 3, wrong);
            SourceReport report = products.report(run, true);
            assertFalse(report.passed());
            assertTrue(ring.line(report).startsWith("[rank 1] shape=[2, 3, 4] max_abs_err="));
            assertTrue(ring.line(report).endsWith("FAIL"), ring.line(report));
        }
    }

    /** The tutorial's own rule, apart from Weft's, which are stricter. */
    @ParameterizedTest
    @CsvSource({"0.0099, true", "0.0101, false", "0.5, false", "NaN, false"})
    void theTutorialsRuleIsAnErrorBelowOnePercent(double share, boolean right) {
        try (Arena arena = Arena.ofConfined()) {
            ProductRun run = Products.run(new RingCommand(), 2, 3, 5, 8, arena);
            Products products = Products.of(run, arena);
            double largest = 0;
            for (long row = 0; row < 6; row++) {
                for (long col = 0; col < 4; col++) {
                    largest = Math.max(largest, Math.abs(products.c().get(row, col)));
                }
            }
            float expected = products.c().get(2, 1);
            products.c().set(2, 1, (float) (expected + share * largest));
            Verification judged = products.report(run, true).judged();
            assertEquals(right, judged.seedRulePassed(), "rel_err " + judged.relErr());
        }
    }

    @Test
    void aPredictionStandsBesideWhatWasMeasured() {
        Invocation run = ring("-n 4 --m 16 --k 96 --n-local 24 -v trn2 --lnc 2");
        assertEquals(0, run.code(), run.err());
        run.assertPrints("(mean ", " [trn2: ", " ms predicted]");
    }

    /** A torus has as many ranks as places. */
    @ParameterizedTest
    @MethodSource("dev.weft.sim.Machines#names")
    void everySourceRunsOnEveryModel(String machine) {
        int ranks = machine.startsWith("torus") ? 256 : 4;
        String options = " -r sim -v %s -n %s --quiet".formatted(machine, ranks);
        for (String command :
                List.of(
                        "ring --m 16 --k 64 --n-local 8",
                        "fgcc --m 64 --k 64 --n-global 256 --lnc 2",
                        "gather --h 16 --w 8",
                        "helion --m 256 --k 64 --n 16",
                        "run --gm 256 --gk 64 --gn 256 --no-verify")) {
            Invocation run = Invocation.ofWords(command + options);
            assertEquals(0, run.code(), command + options + ": " + run.err());
        }
    }

    @Test
    void aSimulatedRingIsPredicted() throws IOException {
        Path file = folder.resolve("sim.json");
        Invocation run = ring("-r sim -v trn2 -n 16 --lnc 2 --json " + file);
        assertEquals(0, run.code(), run.err());
        run.assertPrints("Simulated on trn2", "[SUCCESS] weft ring (sim:trn2, ", "(predicted)");
        run.assertPrints(Invocation.VIEWS);
        String json = Files.readString(file);
        assertTrue(json.contains("\"simulated\" : true"), json);
        assertTrue(json.contains("\"machine\" : \"trn2\""), json);
    }
}
