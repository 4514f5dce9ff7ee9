package dev.weft.cli.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.ChildProcess;
import dev.weft.cli.Invocation;
import dev.weft.cli.Main;
import dev.weft.cli.SharedMemory;
import dev.weft.cli.console.ExitCode;
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

    /** As torchrun would start them: no starter of Weft's, and only its variables. */
    @Test
    void ranksThatAnotherLauncherStartsMeet() throws Exception {
        List<ChildProcess> ranks = new ArrayList<>();
        for (int rank = 0; rank < 3; rank++) {
            ranks.add(
                    ChildProcess.weft(
                                    Files.createDirectory(folder.resolve("rank-" + rank)),
                                    "gather --launcher joined --json - --iterations 2")
                            .environment(SharedMemory.VARIABLE, shared.folder())
                            .environment("LOCAL_RANK", rank)
                            .environment("RANK", rank)
                            .environment("WORLD_SIZE", 3)
                            .environment("MASTER_ADDR", "localhost")
                            .environment("MASTER_PORT", 29500)
                            .start());
        }
        for (ChildProcess rank : ranks) {
            assertEquals(0, rank.code(), rank::toString);
        }
        assertTrue(ranks.getFirst().out().contains("\"ranks\" : 3"), ranks.getFirst().out());
        shared.assertEmpty();
    }

    @Test
    void aMasterOnAnotherHostIsToldOfMpi() throws Exception {
        ChildProcess rank =
                ChildProcess.weft(folder, "gather --launcher joined")
                        .environment("RANK", 0)
                        .environment("WORLD_SIZE", 2)
                        .environment("MASTER_ADDR", "192.0.2.1")
                        .environment("MASTER_PORT", 29500)
                        .start();
        assertEquals(ExitCode.USAGE, rank.code(), rank::toString);
        assertTrue(rank.complaint().contains("ranks on several hosts need MPI"), rank.complaint());
    }

    @Test
    void ranksOfWeftMeet() throws Exception {
        List<String> program = ChildProcess.java();
        program.addAll(
                List.of(Main.class.getName(), "gather", "--launcher", "joined", "--json", "-"));
        program.addAll(List.of("--tiled", "--lnc", "2", "--iterations", "2", "--groups", "2"));
        ChildProcess process =
                launch("--nnodes 1 --nproc-per-node 4", program.toArray(String[]::new));
        assertCode(0, process);
        assertTrue(process.out().contains("\"ranks\" : 4"), process.out());
        assertEquals(1, process.out().split("weft.gather/1", -1).length - 1, "one rank prints");
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

    private static ProcessHandle awaitProcess(Path file, ChildProcess command) throws Exception {
        command.await(() -> Files.exists(file) && Files.readString(file).endsWith("\n"));
        return ProcessHandle.of(Long.parseLong(Files.readString(file).trim())).orElseThrow();
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
        assertTrue(nodes.err().contains("--nnodes 2: expected 1; mpirun starts"), nodes.err());
        assertTrue(Invocation.of("launch", "--help").out().contains("./weft launch"));
    }
}
