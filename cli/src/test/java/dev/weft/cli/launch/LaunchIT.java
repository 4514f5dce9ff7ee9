package dev.weft.cli.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.ChildProcess;
import dev.weft.cli.Invocation;
import dev.weft.cli.SharedMemory;
import dev.weft.cli.console.ExitCode;
import dev.weft.ffi.MpiFamily;
import dev.weft.process.EveryOtherCase;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code weft launch} in a JVM of its own, with programs of the system. */
@Execution(ExecutionMode.CONCURRENT)
class LaunchIT {

    @TempDir Path folder;

    private SharedMemory shared;

    @BeforeEach
    void makeSharedMemory() throws IOException {
        shared = SharedMemory.create();
    }

    private ChildProcess launch(String options, String... program) throws IOException {
        List<String> arguments = new ArrayList<>(List.of("launch"));
        arguments.addAll(List.of(options.split(" ")));
        arguments.add("--");
        arguments.addAll(List.of(program));
        return ChildProcess.weft(folder, arguments)
                .environment(SharedMemory.VARIABLE, shared.folder())
                .start();
    }

    private void assertCode(int expected, ChildProcess launch) throws Exception {
        assertEquals(expected, launch.code(), launch::toString);
        shared.assertEmpty();
    }

    @Test
    void everyRankHasItsEnvironment() throws Exception {
        ChildProcess process =
                launch(
                        "-n 3 --deadline 7s",
                        "sh",
                        "-c",
                        "test -d $WEFT_JOB && echo $WEFT_RANK $WEFT_RANKS $WEFT_DEADLINE_MS $RANK"
                                + " $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK"
                                + " $GROUP_WORLD_SIZE $MASTER_ADDR \"$1\";"
                                + " test $MASTER_PORT -gt 0 && test -n \"$TORCHELASTIC_RUN_ID\"",
                        "name",
                        "two words");
        assertCode(0, process);
        Set<String> expected =
                IntStream.range(0, 3)
                        .mapToObj(
                                r -> r + " 3 7000 " + r + " " + r + " 3 3 0 1 localhost two words")
                        .collect(Collectors.toSet());
        assertEquals(expected, process.out().lines().collect(Collectors.toSet()));
    }

    @Test
    void theFirstFailuresExitCodeCountsAndTheOthersAreEnded() throws Exception {
        ChildProcess process =
                launch(
                        "-n 3 --deadline 100ms",
                        "sh",
                        "-c",
                        "if [ $RANK = 1 ]; then exit 41; fi; sleep 1000 & wait");
        assertCode(41, process);
        assertTrue(process.err().contains("weft: rank 1 failed with exit code 41"));
    }

    @Test
    void aSignalIsTold() throws Exception {
        ChildProcess process = launch("-n 2", "sh", "-c", "if [ $RANK = 1 ]; then kill -9 $$; fi");
        assertCode(128 + 9, process);
        assertTrue(process.err().contains("weft: rank 1 was ended by signal 9"));
    }

    @Test
    void aTerminatedCommandTakesItsRanksAlong() throws Exception {
        Path here = folder.resolve("here");
        ChildProcess process =
                launch(
                        "-n 2",
                        "sh",
                        "-c",
                        // Makes files while it is ended: none may be left in the folder.
                        "echo $$ >"
                                + here
                                + "-$RANK; i=0; while [ $i -lt 100000 ]; do i=$((i+1));"
                                + " : >$WEFT_JOB/$RANK-$i; done; sleep 1000 & wait");
        List<ProcessHandle> ranks = new ArrayList<>();
        for (int rank = 0; rank < 2; rank++) {
            ranks.add(awaitProcess(Path.of(here + "-" + rank), process));
        }
        process.process().destroy();
        assertCode(128 + 15, process);
        assertFalse(process.err().contains("Exception"), process.err());
        ChildProcess.awaitEnd(ranks);
    }

    /**
     * Shells die of SIGTERM at once; one of the programs behind them ends well, one has to be
     * killed.
     */
    @Test
    void programsThatShellsHaveStartedGetTheirTimeAndAreEnded() throws Exception {
        Path script = folder.resolve("serve.sh");
        Files.writeString(
                script,
                """
                cd %s
                end() {
                    : >ending
                    until test -e end; do sleep 0.05; done
                    test -d $WEFT_JOB && : >ended-well
                    exit 0
                }
                if [ $RANK = 0 ]; then trap end TERM; else trap '' TERM; fi
                echo $PPID >shell-$RANK
                echo $$ >program-$RANK
                while test -e program-$RANK; do sleep 0.05; done
                """
                        .formatted(folder));
        ChildProcess process =
                launch("-n 2 --deadline 1s", "sh", "-c", "sh " + script + "; exit $?");
        List<ProcessHandle> shells = new ArrayList<>();
        List<ProcessHandle> programs = new ArrayList<>();
        for (int rank = 0; rank < 2; rank++) {
            programs.add(awaitProcess(folder.resolve("program-" + rank), process));
            shells.add(awaitProcess(folder.resolve("shell-" + rank), process));
        }
        process.process().destroy();
        process.await(() -> Files.exists(folder.resolve("ending")));
        ChildProcess.awaitEnd(shells);
        Files.createFile(folder.resolve("end"));
        assertCode(128 + 15, process);
        assertTrue(Files.exists(folder.resolve("ended-well")), process::toString);
        ChildProcess.awaitEnd(programs);
    }

    /** Far more than a pipe holds. The other rank dies at once, and is not started again. */
    @Test
    void whatARankPrintsWhileItEndsIsShown() throws Exception {
        Path here = folder.resolve("here");
        String script =
                "if [ $RANK = 0 ]; then trap 'seq 1 30000; exit 0' TERM; fi; echo $$ >%1$s-$RANK;"
                        + " while test -e %1$s-$RANK; do sleep 0.05; done";
        ChildProcess process =
                launch("-n 2 --restarts 1 --prefix", "sh", "-c", script.formatted(here));
        for (int rank = 0; rank < 2; rank++) {
            awaitProcess(Path.of(here + "-" + rank), process);
        }
        process.process().destroy();
        assertCode(128 + 15, process);
        assertEquals("weft: ended by SIGTERM", process.complaint());
        List<String> lines = process.out().lines().toList();
        assertEquals(30_000, lines.size());
        assertEquals("[0] 30000", lines.getLast());
    }

    private static ProcessHandle awaitProcess(Path file, ChildProcess command) throws Exception {
        command.await(() -> Files.exists(file) && Files.readString(file).endsWith("\n"));
        return ProcessHandle.of(Long.parseLong(Files.readString(file).trim())).orElseThrow();
    }

    /** As if a signal had come while the command was still preparing its start. */
    @ParameterizedTest
    @ValueSource(strings = {"launch -n 1 touch ", "launch --mpi -n 1 touch "})
    void aCommandThatIsAlreadyEndingStartsNothing(String command) throws Exception {
        Path touched = folder.resolve("touched");
        ChildProcess.Setup setup =
                ChildProcess.java(
                        folder,
                        WhileEnding.class.getName(),
                        List.of((command + touched).split(" ")));
        if (command.contains("--mpi")) {
            setup.environment("WEFT_MPIRUN", MpiRunIT.mpirun(MpiFamily.OPEN_MPI));
        }
        ChildProcess ending = setup.environment(SharedMemory.VARIABLE, shared.folder()).run();
        assertEquals("weft: told to end", ending.complaint());
        assertEquals(ExitCode.FAILED + "\n", ending.out());
        assertFalse(Files.exists(touched));
        shared.assertEmpty();
    }

    @EveryOtherCase
    @ParameterizedTest
    @EnumSource
    void mpirunStartsAnyProgram(MpiFamily family) throws Exception {
        List<String> arguments = new ArrayList<>(List.of("launch", "--mpi", "-n", "3"));
        arguments.addAll(List.of("--deadline", "7s", "sh", "-c"));
        arguments.add(
                "echo ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} $WEFT_DEADLINE_MS $1;"
                        + " test ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} != 2 || exit 5");
        arguments.addAll(List.of("sh", "--its-option"));
        ChildProcess run =
                ChildProcess.weft(folder, arguments)
                        .environment("WEFT_MPIRUN", MpiRunIT.mpirun(family))
                        .run();
        assertEquals(5, run.code(), run::toString);
        assertEquals("weft: mpirun ended with exit code 5", run.complaint());
        assertTrue(run.out().contains("2 7000 --its-option\n"), run::toString);
    }

    /** The loop in the docs, with a program that dies the first time. */
    @Test
    void aLoopStartsAJobOfMpirunAgain() throws Exception {
        String page = Files.readString(Path.of("../docs/reliability.md"));
        String loop = page.substring(page.indexOf("tries=1"));
        Path died = folder.resolve("died");
        String script =
                loop.substring(0, loop.indexOf("```"))
                        .replace("./weft", "\"$@\"")
                        .replace(
                                "./my-program",
                                "sh -c 'test -e %1$s && exit; touch %1$s; kill -9 $$'"
                                        .formatted(died));
        List<String> command = new ArrayList<>(List.of("sh", "-c", script, "sh"));
        command.addAll(ChildProcess.java());
        command.add("dev.weft.cli.Main");
        ChildProcess run =
                ChildProcess.of(folder, command)
                        .environment("WEFT_MPIRUN", MpiRunIT.mpirun(MpiFamily.OPEN_MPI))
                        .run();
        assertEquals(0, run.code(), run::toString);
        // Versions of mpirun differ in the exit code for a rank that a signal ended.
        assertTrue(run.complaint().startsWith("weft: mpirun "), run::toString);
        assertTrue(Files.exists(died));
    }

    @Test
    void aSignalEndsMpirunAndItsRanks() throws Exception {
        Path here = folder.resolve("here");
        ChildProcess command =
                ChildProcess.weft(
                                folder,
                                List.of(
                                        "launch",
                                        "--mpi",
                                        "-n",
                                        "1",
                                        "sh",
                                        "-c",
                                        "echo $$ >" + here + "; exec sleep 1000"))
                        .environment("WEFT_MPIRUN", MpiRunIT.mpirun(MpiFamily.OPEN_MPI))
                        .start();
        ProcessHandle rank = awaitProcess(here, command);
        command.process().destroy();
        assertEquals(128 + 15, command.code(), command::toString);
        assertEquals("weft: ended by SIGTERM", command.complaint());
        ChildProcess.awaitEnd(List.of(rank));
    }

    @Test
    void whatCannotBeStartedIsRefused() throws Exception {
        ChildProcess missing = launch("-n 2", "/no/such/program");
        assertCode(ExitCode.USAGE, missing);
        assertTrue(missing.complaint().startsWith("weft: cannot start '/no/such/program'"));
        Invocation none = Invocation.of("launch", "-n", "0", "true");
        assertEquals(ExitCode.USAGE, none.code());
        assertTrue(none.err().contains("--n-ranks 0: expected 1 to 4096"), none.err());
        assertEquals(ExitCode.USAGE, Invocation.of("launch", "-n", "2").code());
        Invocation nodes = Invocation.of("launch", "--nnodes", "2", "true");
        assertEquals(ExitCode.USAGE, nodes.code());
        assertTrue(nodes.err().contains("--nnodes 2: expected 1; ranks on"), nodes.err());
        assertTrue(Invocation.of("launch", "--help").out().contains("./weft launch"));
    }
}
