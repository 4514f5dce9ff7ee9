package dev.weft.cli.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cli.console.ExitCode;
import dev.weft.fabric.memory.ShmJob;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The command in a JVM of its own, with ranks that are processes. */
class ProcessesIT {

    private static final long LIMIT_SECONDS = 120;

    @TempDir Path folder;

    /** Private to each test, so that what a test leaves behind is seen. */
    private Path shared;

    @BeforeEach
    void makeSharedMemory() throws IOException {
        shared = Files.createTempDirectory(ShmJob.sharedMemory(), "weft-it-");
        shared.toFile().deleteOnExit();
    }

    private ProcessBuilder weft(String arguments) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(
                List.of(
                        "--add-modules",
                        "jdk.incubator.vector",
                        "--enable-native-access=ALL-UNNAMED",
                        "-cp",
                        System.getProperty("java.class.path"),
                        "dev.weft.cli.Main",
                        "run",
                        "--launcher",
                        "processes"));
        command.addAll(List.of(arguments.split(" ")));
        command.addAll(List.of("--data-dir", folder.resolve("out").toString()));
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().put("WEFT_SHM_DIR", shared.toString());
        builder.redirectOutput(outputFile());
        builder.redirectError(errorFile());
        return builder;
    }

    private File outputFile() {
        return folder.resolve("stdout").toFile();
    }

    private File errorFile() {
        return folder.resolve("stderr").toFile();
    }

    private String errors() throws IOException {
        return Files.readString(errorFile().toPath());
    }

    private void assertSharedMemoryIsEmpty() throws IOException {
        try (Stream<Path> left = Files.walk(shared)) {
            assertEquals(List.of(shared), left.toList(), "left in shared memory");
        }
    }

    private static void awaitEnd(Process process) throws InterruptedException {
        boolean ended = process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS);
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
        assertTrue(ended, "the command hangs");
    }

    @Test
    void unevenShardsOverABidirectionalRing() throws Exception {
        Path json = folder.resolve("r.json");
        Process process =
                weft("-n 4 --gm 1000 --gk 768 --gn 513 --dtype bf16 --algorithm bidirectional-ring"
                                + " --shards 400,0,599,1 --warmup 1 --iterations 3 --json "
                                + json)
                        .start();
        awaitEnd(process);
        assertEquals(0, process.exitValue(), errors());
        String record = Files.readString(json);
        assertTrue(record.contains("\"passed\" : true"), record.substring(0, 2000));
        assertTrue(record.contains("\"launcher\" : \"processes\""));
        assertTrue(record.contains("\"bitwiseEqualToUnfused\" : true"));
        assertSharedMemoryIsEmpty();
    }

    @Test
    void columnShardsAndGroups() throws Exception {
        for (String algorithm : List.of("ring", "direct", "auto")) {
            Process process =
                    weft("-n 4 --groups 2 --shards 33,20 --gk 64 --gn 31 --rhs column-sharded"
                                    + " --warmup 0 --iterations 1 --keep-gathered --algorithm "
                                    + algorithm)
                            .start();
            awaitEnd(process);
            assertEquals(0, process.exitValue(), algorithm + ": " + errors());
            assertSharedMemoryIsEmpty();
        }
    }

    /** Who owns a folder above the job's could put another in its place, full of links. */
    @Test
    void sharedMemoryInAFolderOfAnotherUserIsRefused() throws Exception {
        Path theirs = Files.createDirectory(shared.resolve("theirs"));
        shared = Files.createDirectory(theirs.resolve("shared"));
        try {
            Files.setAttribute(theirs, "unix:uid", 12345);
        } catch (IOException e) {
            abort("only the superuser can give a folder away");
        }
        Process process = weft("-n 2 --gm 8 --gk 8 --gn 8").start();
        awaitEnd(process);
        assertEquals(1, process.exitValue(), errors());
        List<String> said = errors().lines().filter(line -> line.startsWith("weft: ")).toList();
        assertEquals(1, said.size(), errors());
        assertTrue(
                said.getFirst()
                        .startsWith(
                                "weft: cannot prepare shared memory: "
                                        + theirs
                                        + " belongs to user 12345, who could replace"),
                said.getFirst());
        assertSharedMemoryIsEmpty();
    }

    /** The ranks are children of the command, with their number in their environment. */
    private ProcessHandle awaitRank(Process command, int rank) throws Exception {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
        while (System.nanoTime() < until && command.isAlive()) {
            for (ProcessHandle child : command.children().toList()) {
                Path environment = Path.of("/proc", Long.toString(child.pid()), "environ");
                if (Files.isReadable(environment)
                        && Files.readString(environment).contains("WEFT_RANK=" + rank + "\0")
                        && measuring()) {
                    return child;
                }
            }
            TimeUnit.MILLISECONDS.sleep(5);
        }
        throw new AssertionError("rank " + rank + " never came: " + errors());
    }

    /** Calls are under way once the first rank has told of its progress. */
    private boolean measuring() throws IOException {
        try (Stream<Path> files = Files.walk(shared)) {
            return files.anyMatch(file -> file.getFileName().toString().equals("progress"));
        } catch (java.io.UncheckedIOException | java.nio.file.NoSuchFileException e) {
            return false; // a region file was unlinked while we looked
        }
    }

    @Test
    void aKilledRankEndsTheCommandWithAnErrorThatNamesIt() throws Exception {
        Process command =
                weft("-n 3 --gm 600 --gk 512 --gn 256 --algorithm ring --iterations 100000"
                                + " --deadline 20s")
                        .start();
        ProcessHandle victim = awaitRank(command, 2);
        List<ProcessHandle> ranks = command.children().toList();
        victim.destroyForcibly();
        awaitEnd(command);
        assertEquals(ExitCode.FAILED, command.exitValue());
        assertTrue(errors().contains("weft: rank 2 was ended by signal 9"), errors());
        assertTableOf(3, 2, "was ended by signal 9");
        for (ProcessHandle rank : ranks) {
            assertFalse(rank.isAlive(), "no rank stays behind");
        }
        assertSharedMemoryIsEmpty();
        assertFalse(Files.exists(folder.resolve("out/output_rank0.bin")), "no half-made outputs");
    }

    /** A row for each rank; those that live tell what they wait for, and of whom they know. */
    private void assertTableOf(int ranks, int culprit, String fate) throws IOException {
        List<String> lines = errors().lines().toList();
        int head = 0;
        while (head < lines.size() && !lines.get(head).startsWith("rank  call  end")) {
            head++;
        }
        assertTrue(head + ranks < lines.size(), errors());
        for (int rank = 0; rank < ranks; rank++) {
            String row = lines.get(head + 1 + rank).strip();
            assertTrue(row.startsWith(rank + "  "), row);
            if (rank == culprit) {
                assertTrue(row.contains(fate), row);
            } else {
                assertTrue(row.contains(" from rank "), row);
                assertTrue(row.contains("rank " + culprit + " "), row);
            }
        }
    }

    @Test
    void aStoppedRankIsNamedByTheCommandThoughItSaysNothing() throws Exception {
        Process command =
                weft("-n 3 --gm 600 --gk 512 --gn 256 --algorithm ring --iterations 100000"
                                + " --deadline 4s")
                        .start();
        ProcessHandle victim = awaitRank(command, 1);
        String pid = Long.toString(victim.pid());
        assertEquals(0, new ProcessBuilder("kill", "-STOP", pid).start().waitFor());
        awaitEnd(command);
        assertEquals(ExitCode.FAILED, command.exitValue());
        assertTrue(
                errors().contains("weft: rank 1 hangs: it gave no sign of life and is stopped; "),
                errors());
        assertTableOf(3, 1, "is stopped");
        assertSharedMemoryIsEmpty();
    }

    @Test
    void anInterruptedCommandSaysSoAndTakesItsRanksAlong() throws Exception {
        Process command =
                weft("-n 2 --algorithm ring --gm 600 --gk 512 --gn 256 --iterations 100000")
                        .start();
        awaitRank(command, 1);
        List<ProcessHandle> ranks = command.children().toList();
        signal("INT", command.pid());
        awaitEnd(command);
        assertEquals(130, command.exitValue());
        assertTrue(errors().contains("weft: ended by SIGINT"), errors());
        for (ProcessHandle rank : ranks) {
            rank.onExit().get(LIMIT_SECONDS, TimeUnit.SECONDS);
        }
        assertSharedMemoryIsEmpty();
    }

    private static void signal(String name, long... pids) throws Exception {
        List<String> command = new ArrayList<>(List.of("kill", "-" + name, "--"));
        for (long pid : pids) {
            command.add(Long.toString(pid));
        }
        assertEquals(0, new ProcessBuilder(command).start().waitFor(), command.toString());
    }

    /** Nobody among the ranks is left who could notice. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void ranksThatAreAllStoppedAreGivenUp(int ranks) throws Exception {
        Process command =
                weft("-n "
                                + ranks
                                + " --algorithm ring --gm 600 --gk 512 --gn 256 --iterations 100000 --deadline 2s")
                        .start();
        awaitRank(command, 0);
        signal("STOP", command.children().mapToLong(ProcessHandle::pid).toArray());
        awaitEnd(command);
        assertEquals(ExitCode.FAILED, command.exitValue());
        String expected =
                ranks == 1
                        ? "weft: rank 0 hangs: it is stopped"
                        : "weft: ranks 0 and 1 hang: each is stopped";
        assertTrue(errors().contains(expected), errors());
        assertSharedMemoryIsEmpty();
    }

    /** Longer than the deadline: nothing moved, but nobody was there to move it. */
    @Test
    void aJobThatIsStoppedAndContinuedAsAWholeGoesOn() throws Exception {
        Process command =
                weft("-n 2 --algorithm ring --gm 600 --gk 512 --gn 256 --iterations 100 --deadline 3s")
                        .start();
        awaitRank(command, 1);
        long[] job =
                LongStream.concat(
                                LongStream.of(command.pid()),
                                command.children().mapToLong(ProcessHandle::pid))
                        .toArray();
        signal("STOP", job);
        TimeUnit.SECONDS.sleep(4);
        signal("CONT", job);
        awaitEnd(command);
        assertEquals(0, command.exitValue(), errors());
        assertSharedMemoryIsEmpty();
    }

    /** The deadline is far away: only the command can know. */
    @Test
    void aRankThatEndsBeforeItHasArrivedEndsTheRunAtOnce() throws Exception {
        Process command = weft("-n 3 --gm 600 --gk 512 --gn 256 --deadline 60m").start();
        while (command.children().count() < 3 && command.isAlive()) {
            TimeUnit.MILLISECONDS.sleep(1);
        }
        command.children()
                .max(Comparator.comparingLong(ProcessHandle::pid))
                .orElseThrow()
                .destroyForcibly();
        awaitEnd(command);
        assertEquals(ExitCode.FAILED, command.exitValue());
        assertTrue(errors().contains("weft: rank 2 was ended by signal 9"), errors());
        assertSharedMemoryIsEmpty();
    }

    @Test
    void aCommandThatIsKilledWhileItsRanksStartLeavesNothing() throws Exception {
        Process command =
                weft("-n 2 --algorithm ring --gm 600 --gk 512 --gn 256 --iterations 100000")
                        .start();
        while (command.children().count() < 2 && command.isAlive()) {
            TimeUnit.MILLISECONDS.sleep(1);
        }
        List<ProcessHandle> ranks = command.children().toList();
        assertEquals(2, ranks.size(), errors());
        command.destroyForcibly().waitFor();
        for (ProcessHandle rank : ranks) {
            rank.onExit().get(LIMIT_SECONDS, TimeUnit.SECONDS);
        }
        assertSharedMemoryIsEmpty();
    }

    /** Enough for Java to start, and not for what follows, or not for all of it. */
    @ParameterizedTest
    @ValueSource(ints = {11, 12, 13})
    void withFewFileHandlesTheCommandEndsWithALine(int handles) throws Exception {
        ProcessBuilder builder = weft("-n 2 --gm 120 --gk 64 --gn 48 --iterations 2");
        List<String> command =
                new ArrayList<>(
                        List.of("sh", "-c", "ulimit -n " + handles + "; exec \"$0\" \"$@\""));
        command.addAll(builder.command());
        Process process = builder.command(command).start();
        awaitEnd(process);
        assertTrue(List.of(1, 2).contains(process.exitValue()), errors());
        assertTrue(errors().contains("weft: "), errors());
        assertFalse(errors().contains("\tat "), errors());
        assertSharedMemoryIsEmpty();
    }

    /** Ranks cannot leave their ends there either, and nothing stands before the one message. */
    @Test
    void sharedMemoryWithoutRoomIsOneLine() throws IOException, InterruptedException {
        String size = "size=4k";
        Process mount =
                new ProcessBuilder("mount", "-t", "tmpfs", "-o", size, "weft", shared.toString())
                        .redirectErrorStream(true)
                        .start();
        assumeTrue(mount.waitFor() == 0, "only the superuser can mount a file system");
        try {
            Process process = weft("--engine scalar --gm 768 --gk 256 --gn 128").start();
            assertTrue(process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS), "it ends");
            assertEquals(ExitCode.FAILED, process.exitValue());
            List<String> told =
                    Files.readAllLines(errorFile().toPath()).stream()
                            .filter(line -> !line.contains("incubator modules"))
                            .toList();
            assertEquals(1, told.size(), String.join("\n", told));
            assertTrue(told.getFirst().contains("No space left on device"), told.getFirst());
        } finally {
            assertEquals(0, new ProcessBuilder("umount", shared.toString()).start().waitFor());
        }
    }
}
