package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.spi.ToolProvider;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** An algorithm from outside the library runs wherever Weft's own do: that of the example. */
class AlgorithmIT {

    private static final Path EXAMPLE = Path.of("..", "examples", "algorithm");
    private static final String NAME = "recursive-doubling";
    private static final String FAILING =
            """
            import dev.weft.plan.*;

            public final class Failing implements PlanWriter {
                public String label() {
                    return "failing";
                }

                public java.util.List<RankPlan> plans(Chunks chunks, int lanes, Hosts hosts) {
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
                                failing.toString());
        assertEquals(0, code);
        Path service = Path.of("META-INF", "services", "dev.weft.plan.PlanWriter");
        Files.createDirectories(classes.resolve(service).getParent());
        Files.writeString(
                classes.resolve(service), Files.readString(EXAMPLE.resolve(service)) + "Failing\n");
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

    @Test
    void itRunsUnderMpi() throws Exception {
        assumeMpi();
        assertRight(run(4, "--launcher mpi"));
    }

    private static void assertRight(ChildProcess run) throws Exception {
        assertEquals(0, run.code(), run::toString);
        assertTrue(run.out().contains("product bitwise equal to the unfused one"), run::toString);
        assertTrue(run.out().contains("(cpu, " + NAME + ","), run::toString);
    }

    @Test
    void itIsPriced() throws Exception {
        ChildProcess run =
                weft("run -r sim --no-verify -v h200-nvlink8 -n 6 --gm 768 --algorithm " + NAME);
        assertEquals(0, run.code(), run::toString);
        assertTrue(run.out().contains("(sim:h200-nvlink8, " + NAME + ","), run::toString);
    }

    @Test
    void itsPlanIsPrinted() throws Exception {
        ChildProcess run = weft("plan -v h200-nvlink8 -n 4 --gm 512 --dump --algorithm " + NAME);
        assertEquals(0, run.code(), run::toString);
        assertTrue(run.out().lines().anyMatch(l -> l.startsWith(NAME + ": ")), run::toString);
        assertTrue(
                run.out().contains("of rank 1 to rank 2, each after it has arrived"),
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
                                        + " index 8 (Failing.java:9)"),
                run::toString);
    }

    @Test
    void anUnknownNameTellsWhatThereIs() throws Exception {
        ChildProcess run = weft("run -n 2 --algorithm nonsense");
        assertEquals(2, run.code(), run::toString);
        assertTrue(run.err().contains("sequential, " + NAME), run::toString);
    }
}
