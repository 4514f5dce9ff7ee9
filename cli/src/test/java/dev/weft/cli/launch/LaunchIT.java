package dev.weft.cli.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Invocation;
import dev.weft.cli.Main;
import dev.weft.cli.console.ExitCode;
import dev.weft.fabric.memory.ShmJob;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code weft launch} in a JVM of its own, with programs of the system. */
class LaunchIT {

    private static final long LIMIT_SECONDS = 120;

    @TempDir Path folder;

    /** Private to each test, so that what a test leaves behind is seen. */
    private Path shared;

    @BeforeEach
    void makeSharedMemory() throws IOException {
        shared = Files.createTempDirectory(ShmJob.sharedMemory(), "weft-it-");
        shared.toFile().deleteOnExit();
    }

    private Process launch(String options, String... program) throws IOException {
        List<String> command = new ArrayList<>(java());
        command.addAll(List.of(Main.class.getName(), "launch"));
        command.addAll(List.of(options.split(" ")));
        command.add("--");
        command.addAll(List.of(program));
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().put("WEFT_SHM_DIR", shared.toString());
        builder.redirectOutput(folder.resolve("stdout").toFile());
        builder.redirectError(folder.resolve("stderr").toFile());
        return builder.start();
    }

    private static List<String> java() {
        return List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--add-modules",
                "jdk.incubator.vector",
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path"));
    }

    private int exitCode(Process process) throws Exception {
        boolean ended = process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS);
        List<ProcessHandle> left = process.descendants().toList();
        left.forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
        assertTrue(ended, "the command hangs");
        assertEquals(List.of(), left, "processes left behind");
        try (Stream<Path> files = Files.walk(shared)) {
            assertEquals(List.of(shared), files.toList(), "left in shared memory");
        }
        return process.exitValue();
    }

    private String text(String name) throws IOException {
        return Files.readString(folder.resolve(name));
    }

    @Test
    void everyRankHasItsEnvironment() throws Exception {
        Process process =
                launch(
                        "-n 3 --deadline 7s",
                        "sh",
                        "-c",
                        "test -d $WEFT_JOB && echo $WEFT_RANK $WEFT_RANKS $WEFT_DEADLINE_MS $RANK"
                                + " $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE \"$1\"",
                        "name",
                        "two words");
        assertEquals(0, exitCode(process), text("stderr"));
        Set<String> expected =
                IntStream.range(0, 3)
                        .mapToObj(r -> r + " 3 7000 " + r + " " + r + " 3 3 two words")
                        .collect(Collectors.toSet());
        assertEquals(expected, text("stdout").lines().collect(Collectors.toSet()));
    }

    @Test
    void ranksOfWeftMeet() throws Exception {
        List<String> program = new ArrayList<>(java());
        program.addAll(
                List.of(Main.class.getName(), "gather", "--launcher", "joined", "--json", "-"));
        program.addAll(List.of("--tiled", "--lnc", "2", "--iterations", "2", "--groups", "2"));
        Process process = launch("-n 4", program.toArray(String[]::new));
        assertEquals(0, exitCode(process), text("stderr"));
        assertTrue(text("stdout").contains("\"ranks\" : 4"), text("stdout"));
        assertEquals(1, text("stdout").split("weft.gather/1", -1).length - 1, "one rank prints");
    }

    @Test
    void theFirstFailuresExitCodeCountsAndTheOthersAreEnded() throws Exception {
        Process process =
                launch(
                        "-n 3 --deadline 100ms",
                        "sh",
                        "-c",
                        "if [ $RANK = 1 ]; then exit 41; fi; sleep 1000 & wait");
        assertEquals(41, exitCode(process), text("stderr"));
        assertTrue(text("stderr").contains("weft: rank 1 failed with exit code 41"));
    }

    @Test
    void aSignalIsTold() throws Exception {
        Process process = launch("-n 2", "sh", "-c", "if [ $RANK = 1 ]; then kill -9 $$; fi");
        assertEquals(128 + 9, exitCode(process), text("stderr"));
        assertTrue(text("stderr").contains("weft: rank 1 was ended by signal 9"));
    }

    @Test
    void aTerminatedCommandTakesItsRanksAlong() throws Exception {
        Path here = folder.resolve("here");
        Process process =
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
        process.destroy();
        assertEquals(128 + 15, exitCode(process), text("stderr"));
        assertFalse(text("stderr").contains("Exception"), text("stderr"));
        for (ProcessHandle rank : ranks) {
            rank.onExit().get(LIMIT_SECONDS, TimeUnit.SECONDS);
        }
    }

    private ProcessHandle awaitProcess(Path file, Process command) throws Exception {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
        while (System.nanoTime() < until && command.isAlive()) {
            if (Files.exists(file) && Files.readString(file).endsWith("\n")) {
                long id = Long.parseLong(Files.readString(file).trim());
                return ProcessHandle.of(id).orElseThrow();
            }
            TimeUnit.MILLISECONDS.sleep(5);
        }
        throw new AssertionError("no rank came: " + text("stderr"));
    }

    @Test
    void whatCannotBeStartedIsRefused() throws Exception {
        assertEquals(ExitCode.USAGE, exitCode(launch("-n 2", "/no/such/program")));
        assertTrue(text("stderr").contains("weft: cannot start '/no/such/program'"));
        assertEquals(ExitCode.USAGE, exitCode(launch("-n 0", "true")));
        assertTrue(text("stderr").contains("--n-ranks 0: expected 1 to 4096"));
        assertEquals(ExitCode.USAGE, Invocation.of("launch", "-n", "2").code());
        assertTrue(Invocation.of("launch", "--help").out().contains("./weft launch"));
    }
}
