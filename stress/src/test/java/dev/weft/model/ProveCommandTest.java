package dev.weft.model;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.GatherRequest;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.ReductionWriter;
import dev.weft.plan.step.StepPlan;
import dev.weft.stress.CommandTest;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.spi.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

class ProveCommandTest extends CommandTest {

    /** A user's algorithm that fails. */
    public static final class Failing implements GatherWriter {

        @Override
        public String label() {
            return "failing";
        }

        @Override
        public List<StepPlan> plans(GatherRequest request) {
            throw new IndexOutOfBoundsException("index 8");
        }
    }

    private int run(String... words) {
        return run(new CommandLine(new ProveCommand()), words);
    }

    @Test
    void theSmokeSetIsProvenAndEveryMutantFound() {
        assertEquals(0, run("--smoke"), out::toString);
        String text = out.toString();
        int entries = Catalogue.smoke().size();
        assertTrue(text.contains(entries + " of " + entries + " proven."), text);
        long found = text.lines().filter(line -> line.contains("): found after ")).count();
        long mutants =
                Arrays.stream(Mutant.values())
                        .filter(mutant -> mutant != Mutant.NONE)
                        .mapToLong(mutant -> Catalogue.against(mutant).size())
                        .sum();
        assertEquals(mutants, found, text);
    }

    @Test
    void oneAlgorithmIsProvenAlone() {
        assertEquals(0, run("--algorithm", "mesh-pull"), out::toString);
        assertTrue(out.toString().contains("7 of 7 proven."), out.toString());
        assertEquals(2, run("--algorithm", "nonsense"));
        assertTrue(
                err.toString().contains("--algorithm nonsense: unknown algorithm"), err::toString);
        assertEquals(2, run("--algorithm", "ring", "--smoke"));
    }

    @Test
    void tooFewStatesAreNoProof() {
        assertEquals(1, run("--smoke", "--states", "10"));
        assertTrue(out.toString().contains("-> more than 10 states"), out.toString());
        assertTrue(out.toString().endsWith("NOT PROVEN: see above." + System.lineSeparator()));
    }

    @Test
    void wrongOptionsAreWrongUsage() {
        assertEquals(2, run("--smoke", "--all"));
        assertTrue(err.toString().contains("--smoke and --all: expected one of the two"));
        assertEquals(2, run("--states", "0"));
        assertTrue(err.toString().contains("--states 0: expected 1 or more"));
    }

    /** The example's, which has steps alone. */
    @Test
    void aReductionOfOnesOwnIsProven(@TempDir Path folder) throws Exception {
        Path example = Path.of("..", "examples", "reduction");
        URL library = ReductionWriter.class.getProtectionDomain().getCodeSource().getLocation();
        int code =
                ToolProvider.findFirst("javac")
                        .orElseThrow()
                        .run(
                                System.out,
                                System.err,
                                "-cp",
                                Path.of(library.toURI()).toString(),
                                "-d",
                                folder.toString(),
                                example.resolve("RecursiveHalving.java").toString());
        assertEquals(0, code);
        Path service = Path.of("META-INF", "services", "dev.weft.plan.ReductionWriter");
        Files.createDirectories(folder.resolve(service).getParent());
        Files.copy(example.resolve(service), folder.resolve(service));
        assertEquals(0, runWith(folder, "--algorithm", "recursive-halving"), out::toString);
        assertTrue(out.toString().contains("7 of 7 proven."), out.toString());
    }

    /** Runs the command with more classes. */
    private int runWith(Path folder, String... words) throws IOException {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        try (URLClassLoader own = new URLClassLoader(new URL[] {folder.toUri().toURL()}, before)) {
            thread.setContextClassLoader(own);
            return run(words);
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    @Test
    void anAlgorithmThatFailsIsNamedInOneLine(@TempDir Path folder) throws IOException {
        Path service = folder.resolve("META-INF/services/dev.weft.plan.GatherWriter");
        Files.createDirectories(service.getParent());
        Files.writeString(service, Failing.class.getName());
        assertEquals(2, runWith(folder, "--algorithm", "failing"));
        String line = err.toString().lines().findFirst().orElse("");
        assertTrue(
                line.startsWith(
                        "--algorithm failing: plans() threw IndexOutOfBoundsException: index 8"
                                + " (ProveCommandTest.java:"),
                line);
    }
}
