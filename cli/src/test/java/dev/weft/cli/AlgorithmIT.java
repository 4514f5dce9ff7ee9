package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.spi.ToolProvider;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Algorithms from outside the library run wherever Weft's own do: those of the examples. */
@Execution(ExecutionMode.CONCURRENT)
class AlgorithmIT {

    private static final Path EXAMPLE = Path.of("..", "examples", "algorithm");
    private static final Path SUMS_EXAMPLE = Path.of("..", "examples", "reduction");
    private static final String NAME = "recursive-doubling";
    private static final String SUMS = "recursive-halving";
    private static final String SUMS_OP = " --op matmul-reduce-scatter";
    private static final String FAILING =
            """
            import dev.weft.plan.*;
            import dev.weft.plan.step.StepPlan;

            public final class Failing implements GatherWriter {
                public String label() {
                    return "failing";
                }

                public java.util.List<StepPlan> plans(GatherRequest request) {
                    throw new IndexOutOfBoundsException("index 8");
                }
            }
            """;

    @TempDir static Path classes;
    @TempDir Path folder;

    @BeforeAll
    static void compile(@TempDir Path sources) throws Exception {
        Path failing = Files.writeString(sources.resolve("Failing.java"), FAILING);
        int code =
                ToolProvider.findFirst("javac")
                        .orElseThrow()
                        .run(
                                System.out,
                                System.err,
                                "-cp",
                                System.getProperty("java.class.path"),
                                "-d",
                                classes.toString(),
                                EXAMPLE.resolve("RecursiveDoubling.java").toString(),
                                SUMS_EXAMPLE.resolve("RecursiveHalving.java").toString(),
                                failing.toString());
        assertEquals(0, code);
        Path service = Path.of("META-INF", "services", "dev.weft.plan.GatherWriter");
        Files.createDirectories(classes.resolve(service).getParent());
        Files.writeString(
                classes.resolve(service), Files.readString(EXAMPLE.resolve(service)) + "Failing\n");
        Path sums = Path.of("META-INF", "services", "dev.weft.plan.ReductionWriter");
        Files.copy(SUMS_EXAMPLE.resolve(sums), classes.resolve(sums));
    }

    private ChildProcess weft(String arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of(ChildProcess.SCRIPT.toString()));
        command.addAll(List.of(arguments.split(" ")));
        return ChildProcess.of(folder, command).environment("WEFT_CLASSPATH", classes).run();
    }

    private ChildProcess run(int ranks, String more) throws Exception {
        return run(NAME, ranks, more);
    }

    private ChildProcess run(String algorithm, int ranks, String more) throws Exception {
        return weft(
                "run -n %d --gm 97 --gk 32 --gn 16 --engine scalar --warmup 1 --iterations 2 --algorithm %s --data-dir %s %s"
                        .formatted(ranks, algorithm, folder.resolve("data"), more));
    }

    private void assumeMpi() throws Exception {
        assumeTrue(
                ChildProcess.of(folder, List.of("sh", "-c", "command -v mpirun")).run().code() == 0,
                "no mpirun on the path");
    }

    /** Powers of two double, others go Bruck's way. */
    @ParameterizedTest
    @ValueSource(strings = {"4 --launcher threads", "3 --launcher processes"})
    void itsProductIsBitwiseRightAndReported(String ranksAndLauncher) throws Exception {
        int ranks = Integer.parseInt(ranksAndLauncher.substring(0, 1));
        Path report = folder.resolve("report.html");
        ChildProcess run = run(ranks, ranksAndLauncher.substring(2) + " --report " + report);
        assertRight(run);
        assertTrue(Files.readString(report).contains(NAME));
    }

    /** The bits are those of its order; powers of two halve. */
    @Test
    void itsSumsAreBitwiseRightAndReported() throws Exception {
        Path report = folder.resolve("report.html");
        String more = "--launcher processes --k-parts 9,0,12,11" + SUMS_OP + " --report " + report;
        assertRight(run(SUMS, 4, more), SUMS);
        assertTrue(Files.readString(report).contains(SUMS));
    }

    @Test
    void itRunsUnderMpi() throws Exception {
        assumeMpi();
        assertRight(run(4, "--launcher mpi"));
        // Other numbers of ranks exchange in pairs.
        assertRight(run(SUMS, 3, "--launcher mpi" + SUMS_OP), SUMS);
    }

    private static void assertRight(ChildProcess run) throws Exception {
        assertRight(run, NAME);
    }

    private static void assertRight(ChildProcess run, String name) throws Exception {
        assertEquals(0, run.code(), run::toString);
        assertTrue(run.out().contains("product bitwise equal to the unfused one"), run::toString);
        assertTrue(run.out().contains("(cpu, " + name + ","), run::toString);
    }

    @Test
    void itIsPriced() throws Exception {
        ChildProcess run =
                weft("run -r sim --no-verify -v h200-nvlink8 -n 6 --gm 768 --algorithm " + NAME);
        assertEquals(0, run.code(), run::toString);
        assertTrue(run.out().contains("(sim:h200-nvlink8, " + NAME + ","), run::toString);
        ChildProcess sums =
                weft(
                        "run -r sim --no-verify -v h200-nvlink8 -n 6 --gm 768 --algorithm "
                                + SUMS
                                + SUMS_OP);
        assertEquals(0, sums.code(), sums::toString);
        assertTrue(sums.out().contains("(sim:h200-nvlink8, " + SUMS + ","), sums::toString);
    }

    @Test
    void itsPlanIsPrinted() throws Exception {
        ChildProcess run = weft("plan -v h200-nvlink8 -n 4 --gm 512 --dump --algorithm " + NAME);
        assertEquals(0, run.code(), run::toString);
        assertTrue(run.out().lines().anyMatch(l -> l.startsWith(NAME + ": ")), run::toString);
        assertTrue(
                Pattern.compile("copy 0:gathered.* to 2:gathered.* after 0\\.")
                        .matcher(run.out())
                        .find(),
                run::toString);
        ChildProcess sums =
                weft("plan -v h200-nvlink8 -n 4 --gm 512 --dump --algorithm " + SUMS + SUMS_OP);
        assertEquals(0, sums.code(), sums::toString);
        assertTrue(
                sums.out().contains("copy 0:sums[256..384, 0..1024] to 2:from 0[0..128, 0..1024]"),
                sums::toString);
    }

    /** It does not know how to give all rows to every rank. */
    @Test
    void whatItRefusesIsWrongUsage() throws Exception {
        ChildProcess run = run(SUMS, 2, "--op matmul-allreduce");
        assertEquals(2, run.code(), run::toString);
        assertTrue(
                run.err().contains("algorithm 'recursive-halving': an all-reduce: expected"),
                run::toString);
    }

    @ParameterizedTest
    @ValueSource(strings = {"processes", "mpi"})
    void oneThatFailsIsNamedOnce(String launcher) throws Exception {
        if (launcher.equals("mpi")) {
            assumeMpi();
        }
        ChildProcess run = run("failing", 2, "--launcher " + launcher);
        assertEquals(2, run.code(), run::toString);
        List<String> own = run.err().lines().filter(line -> line.contains("weft: ")).toList();
        assertEquals(1, own.size(), run::toString);
        assertTrue(
                own.getFirst()
                        .endsWith(
                                "algorithm 'failing': plans() threw IndexOutOfBoundsException:"
                                        + " index 8 (Failing.java:10)"),
                run::toString);
    }

    @Test
    void anUnknownNameTellsWhatThereIs() throws Exception {
        ChildProcess run = weft("run -n 2 --algorithm nonsense");
        assertEquals(2, run.code(), run::toString);
        assertTrue(run.err().contains("sequential, " + NAME), run::toString);
    }
}
