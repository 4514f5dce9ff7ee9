package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/**
 * The steps of docs/tutorial.md with programs of the user's own, in a shell whose default java is
 * none that could run them.
 */
@Execution(ExecutionMode.CONCURRENT)
class TutorialIT {

    private static final Path CLONE = ChildProcess.SCRIPT.getParent();
    private static final String MPI = "./weft launch --mpi ";

    @TempDir Path folder;

    @BeforeEach
    void makeFolder() throws IOException {
        program("weft", "exec '" + CLONE.resolve("weft") + "' \"$@\"");
        Files.createDirectory(folder.resolve("bin"));
        program("bin/java", "exit 97");
        program("bin/javac", "exit 97");
        Path first = folder.resolve("examples/first/First.java");
        Files.createDirectories(first.getParent());
        Files.copy(CLONE.resolve("examples/first/First.java"), first);
    }

    private void program(String name, String line) throws IOException {
        Path file = Files.writeString(folder.resolve(name), "#!/bin/sh\n" + line + "\n");
        assertTrue(file.toFile().setExecutable(true));
    }

    private ChildProcess shell(String commands) throws Exception {
        ChildProcess.Setup shell = ChildProcess.of(folder, List.of("bash", "-ec", commands));
        String path = shell.builder().environment().get("PATH");
        return shell.environment("PATH", folder.resolve("bin") + File.pathSeparator + path)
                // What a user adds as root, or with fewer cores than ranks.
                .environment("OMPI_ALLOW_RUN_AS_ROOT", "1")
                .environment("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
                .environment("OMPI_MCA_rmaps_base_oversubscribe", "1")
                .inFolder()
                .run();
    }

    private static List<String> steps(String part) throws IOException {
        return TutorialPageTest.blocks("sh").stream()
                .filter(TutorialPageTest::needsShell)
                .filter(block -> block.contains(part))
                .toList();
    }

    /** As threads and as processes, one line from each of four ranks. */
    @Test
    void theProgramRuns() throws Exception {
        List<String> steps = steps("/First.java");
        assertEquals(2, steps.size(), steps::toString);
        for (String step : steps) {
            ChildProcess run = shell(step.replaceAll("(?m)^" + MPI + ".*$", ""));
            assertEquals(0, run.code(), run::toString);
            assertEquals(
                    4, run.out().lines().filter(l -> l.contains(" of 4: ")).count(), run::toString);
        }
    }

    @Test
    void theProgramRunsUnderMpi() throws Exception {
        ChildProcess found = shell("command -v mpirun");
        assumeTrue(found.code() == 0, "no mpirun on the path");
        String step = steps(MPI).getFirst();
        ChildProcess run = shell(step.substring(step.indexOf(MPI)));
        assertEquals(0, run.code(), run::toString);
        assertEquals(
                4, run.out().lines().filter(l -> l.contains(" of 4: ")).count(), run::toString);
    }

    @Test
    void thePlanOfTheUsersOwnRuns() throws Exception {
        String source = TutorialPageTest.blocks("java").getLast();
        Files.writeString(folder.resolve("FarthestFirst.java"), source);
        ChildProcess run = shell(steps("FarthestFirst").getFirst());
        assertEquals(0, run.code(), run::toString);
        assertTrue(run.out().contains("Verification PASSED"), run::toString);
        assertTrue(run.out().contains("\nfarthest-first: "), run::toString);
    }

    /** A class path of the user's own is joined with Weft's; what follows the class is its own. */
    @Test
    void aClassPathIsJoined() throws Exception {
        Files.writeString(
                folder.resolve("Shown.java"),
                """
                class Shown { static String text = dev.weft.tensor.DType.BF16.label(); }
                """);
        Files.writeString(
                folder.resolve("Main.java"),
                """
                class Main {
                    public static void main(String[] words) {
                        System.out.println(Shown.text + " " + String.join(" ", words)
                            + " " + System.getenv("LC_ALL"));
                    }
                }
                """);
        ChildProcess run =
                shell(
                        """
                        ./weft javac -d one Shown.java
                        ./weft javac -cp one -d two Main.java
                        LC_ALL=C ./weft java --add-modules java.sql --class-path=one:two Main -cp words --help
                        cd two && LC_ALL=tr_TR.UTF-8 CLASSPATH=../one:. ../weft java Main
                        """);
        assertEquals(0, run.code(), run::toString);
        // A Turkish locale would break MPICH.
        assertEquals("bf16 -cp words --help C\nbf16  C.UTF-8\n", run.out());
    }

    @Test
    void whatIsMissingIsNamed() throws Exception {
        Path none = folder.resolve("none");
        assertRefused(
                "WEFT_CLASSPATH names " + none + ", which does not exist: expected jars or folders",
                shell("WEFT_CLASSPATH=%s:%s ./weft java --version".formatted(folder, none)));
        assertRefused("-cp of 'weft java' needs a class path", shell("./weft java -cp"));
        // The tests' own copy has no stress commands: ./weft builds them elsewhere.
        assertRefused(
                "the stress commands are not built yet: run ./weft soak once without it",
                shell("./weft soak --minutes 1"));
        ChildProcess help = shell("./weft soak --help");
        assertEquals(0, help.code(), help::toString);
        assertTrue(help.out().startsWith("Usage: weft soak"), help::toString);
    }

    private static void assertRefused(String expected, ChildProcess run) throws Exception {
        assertEquals(2, run.code(), run::toString);
        assertEquals(1, run.err().lines().count(), run::toString);
        assertTrue(run.complaint().contains(expected), run::toString);
    }
}
