package dev.weft.cli.launch;

import static dev.weft.cli.ChildProcess.ENDLESS;
import static dev.weft.cli.ChildProcess.SHORT;
import static dev.weft.cli.ChildProcess.signal;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cli.ChildProcess;
import dev.weft.cli.SharedMemory;
import dev.weft.cli.console.ExitCode;
import dev.weft.process.EveryOtherCase;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The command in a JVM of its own, with ranks that are processes. */
@Execution(ExecutionMode.CONCURRENT)
class ProcessesIT {

    @TempDir Path folder;

    private SharedMemory shared;

    @BeforeEach
    void makeSharedMemory() throws IOException {
        shared = SharedMemory.create();
    }

    private ChildProcess.Setup weft(String arguments) {
        String all = arguments.strip() + " --data-dir " + folder.resolve("out");
        return ChildProcess.weft(folder, "run --launcher processes " + all)
                .environment(SharedMemory.VARIABLE, shared.folder());
    }

    /** A run that a test ends, once its calls are under way. */
    private ChildProcess measuring(String arguments) throws Exception {
        ChildProcess command = weft(arguments).start();
        command.await(shared::isMeasuring);
        return command;
    }

    private static long[] pids(List<ProcessHandle> processes) {
        return processes.stream().mapToLong(ProcessHandle::pid).toArray();
    }

    private static List<ProcessHandle> ranks(ChildProcess command) {
        return command.process().children().toList();
    }

    private void assertSuccess(ChildProcess run) throws Exception {
        assertEquals(0, run.code(), run::toString);
        shared.assertEmpty();
    }

    private void assertFailed(String complaint, ChildProcess run) throws Exception {
        assertEquals(ExitCode.FAILED, run.code(), run::toString);
        assertTrue(run.complaint().startsWith(complaint), run::toString);
        shared.assertEmpty();
    }

    @Test
    void unevenShardsOverABidirectionalRing() throws Exception {
        Path json = folder.resolve("r.json");
        assertSuccess(
                weft("-n 4 --gm 100 --gk 64 --gn 33 --dtype bf16 --algorithm bidirectional-ring"
                                + " --shards 40,0,59,1 --engine scalar --warmup 1 --iterations 2 --json "
                                + json)
                        .run());
        String record = Files.readString(json);
        assertTrue(record.contains("\"passed\" : true"), record.substring(0, 2000));
        assertTrue(record.contains("\"launcher\" : \"processes\""));
        assertTrue(record.contains("\"bitwiseEqualToUnfused\" : true"));
    }

    @Test
    void columnShardsAndGroupsWithTheAlgorithmOfTheirOwnChoice() throws Exception {
        assertSuccess(
                weft("-n 4 --groups 2 --shards 33,20 --gk 64 --gn 31 --rhs column-sharded"
                                + " --warmup 0 --iterations 1 --keep-gathered --engine scalar")
                        .run());
    }

    @EveryOtherCase
    @ParameterizedTest
    @ValueSource(
            strings = {
                "--op matmul-reduce-scatter -n 3 --shards 40,0,19 --k-parts 0,50,14 --gn 33"
                        + " --algorithm chain",
                "--op matmul-allreduce -n 3 --shards 0,0,19 --k-parts 20,0,14 --gn 33 --algorithm"
                        + " direct",
                "--op matmul-allreduce -n 2 --gm 50 --gk 64 --gn 33 --order by-rank"
            })
    void productsAreSummed(String arguments) throws Exception {
        Path json = folder.resolve("r.json");
        assertSuccess(
                weft(arguments + " --explain --warmup 1 --iterations 2 --json " + json).run());
        String record = Files.readString(json);
        assertTrue(record.contains("\"launcher\" : \"processes\""));
        assertTrue(record.contains("\"op\" : \"" + arguments.split(" ")[1] + "\""));
        assertTrue(record.contains("\"bitwiseEqualToUnfused\" : true"));
    }

    /** Who owns a folder above the job's could put another in its place, full of links. */
    @Test
    void sharedMemoryInAFolderOfAnotherUserIsRefused() throws Exception {
        Path theirs = Files.createDirectory(shared.folder().resolve("theirs"));
        shared = new SharedMemory(Files.createDirectory(theirs.resolve("shared")));
        try {
            Files.setAttribute(theirs, "unix:uid", 12345);
        } catch (IOException e) {
            abort("only the superuser can give a folder away");
        }
        assertFailed(
                "weft: cannot prepare shared memory: "
                        + theirs
                        + " belongs to user 12345, who could replace",
                weft("-n 2 " + SHORT).run());
    }

    @Test
    void aKilledRankEndsTheCommandWithAnErrorThatNamesIt() throws Exception {
        ChildProcess command = measuring("-n 3 --deadline 20s " + ENDLESS);
        List<ProcessHandle> ranks = ranks(command);
        command.awaitRank(2, () -> true).destroyForcibly();
        assertFailed("weft: rank 2 was ended by signal 9", command);
        assertTableOf(3, 2, "was ended by signal 9", command);
        for (ProcessHandle rank : ranks) {
            assertFalse(rank.isAlive(), "no rank stays behind");
        }
        assertFalse(Files.exists(folder.resolve("out/output_rank0.bin")), "no half-made outputs");
    }

    /** A row for each rank; those that live tell what they wait for, and of whom they know. */
    private static void assertTableOf(int ranks, int culprit, String fate, ChildProcess command) {
        List<String> lines =
                command.err()
                        .lines()
                        .dropWhile(line -> !line.startsWith("rank  call  end"))
                        .toList();
        assertTrue(lines.size() > ranks, command::toString);
        for (int rank = 0; rank < ranks; rank++) {
            String row = lines.get(1 + rank).strip();
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
        ChildProcess command = measuring("-n 3 --deadline 4s " + ENDLESS);
        signal("STOP", command.awaitRank(1, () -> true).pid());
        assertFailed("weft: rank 1 hangs: it gave no sign of life and is stopped; ", command);
        assertTableOf(3, 1, "is stopped", command);
    }

    @Test
    void anInterruptedCommandSaysSoAndTakesItsRanksAlong() throws Exception {
        ChildProcess command = weft("-n 2 " + ENDLESS).interruptible().start();
        command.await(shared::isMeasuring);
        List<ProcessHandle> ranks = ranks(command);
        signal("INT", command.pid());
        assertEquals(130, command.code());
        assertEquals("weft: ended by SIGINT", command.complaint());
        ChildProcess.awaitEnd(ranks);
        shared.assertEmpty();
    }

    /** Nobody among the ranks is left who could notice. */
    @EveryOtherCase
    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void ranksThatAreAllStoppedAreGivenUp(int ranks) throws Exception {
        ChildProcess command = measuring("-n " + ranks + " --deadline 4s " + ENDLESS);
        signal("STOP", pids(ranks(command)));
        assertFailed(
                ranks == 1
                        ? "weft: rank 0 hangs: it is stopped"
                        : "weft: ranks 0 and 1 hang: each is stopped",
                command);
    }

    /** Longer than the deadline: nothing moved, but nobody was there to move it. */
    @Test
    void aJobThatIsStoppedAndContinuedAsAWholeGoesOn() throws Exception {
        ChildProcess command =
                measuring(
                        "-n 2 --gm 100 --gk 32 --gn 32 --algorithm ring --engine scalar"
                                + " --iterations 100 --deadline 4s");
        long[] job =
                LongStream.concat(LongStream.of(command.pid()), LongStream.of(pids(ranks(command))))
                        .toArray();
        signal("STOP", job);
        TimeUnit.SECONDS.sleep(5);
        signal("CONT", job);
        assertSuccess(command);
    }

    /** The deadline is far away: only the command can know. */
    @Test
    void aRankThatEndsBeforeItHasArrivedEndsTheRunAtOnce() throws Exception {
        ChildProcess command = weft("-n 3 --deadline 60m " + ENDLESS).start();
        command.awaitRank(2, () -> true).destroyForcibly();
        assertFailed("weft: rank 2 was ended by signal 9", command);
    }

    @Test
    void aCommandThatIsKilledWhileItsRanksStartLeavesNothing() throws Exception {
        ChildProcess command = weft("-n 2 " + ENDLESS).start();
        command.await(() -> ranks(command).size() == 2);
        List<ProcessHandle> ranks = ranks(command);
        command.process().destroyForcibly().waitFor();
        ChildProcess.awaitEnd(ranks);
        shared.assertEmpty();
    }

    /** Enough for Java to start, and not for what follows, or not for all of it. */
    @EveryOtherCase
    @ParameterizedTest
    @ValueSource(ints = {11, 12, 13})
    void withFewFileHandlesTheCommandEndsWithALine(int handles) throws Exception {
        ChildProcess run = weft("-n 2 " + SHORT).after("ulimit -n " + handles).run();
        assertTrue(List.of(1, 2).contains(run.code()), run::toString);
        assertTrue(run.err().contains("weft: "), run::toString);
        assertFalse(run.err().contains("\tat "), run::toString);
        shared.assertEmpty();
    }

    /** Java starts, and its ranks cannot be started. */
    @Test
    void tooFewFileHandlesForRanksAreNamed() throws Exception {
        ChildProcess run = weft("-n 2 " + SHORT).after("ulimit -n 21").run();
        assertEquals(ExitCode.FAILED, run.code(), run::toString);
        assertTrue(run.complaint().contains("(ulimit -n)"), run::toString);
        shared.assertEmpty();
    }

    /** Java itself says nothing, or something on standard output. */
    @EveryOtherCase
    @ParameterizedTest
    @ValueSource(ints = {200_000, 1_000_000})
    void aJavaThatCannotStartIsOneLine(int kibibytes) throws Exception {
        ChildProcess run =
                ChildProcess.of(folder, List.of(ChildProcess.SCRIPT.toString(), "run"))
                        .after("ulimit -v " + kibibytes)
                        .run();
        assertEquals(ExitCode.FAILED, run.code(), run::toString);
        assertTrue(
                run.complaint()
                        .matches(
                                "weft: Java cannot start \\(exit code [0-9]+.*\\): limits are "
                                        + kibibytes
                                        + " KiB of memory .*"),
                run::toString);
        assertEquals("", run.out());
    }

    /** Ranks cannot leave their ends there either, and nothing stands before the one message. */
    @Test
    void sharedMemoryWithoutRoomIsOneLine() throws IOException, InterruptedException {
        String mount = shared.folder().toString();
        Process mounting =
                new ProcessBuilder("mount", "-t", "tmpfs", "-o", "size=512k", "weft", mount)
                        .redirectErrorStream(true)
                        .start();
        assumeTrue(mounting.waitFor() == 0, "only the superuser can mount a file system");
        try {
            ChildProcess run =
                    weft("--algorithm ring --engine scalar --gm 768 --gk 256 --gn 128").run();
            assertEquals(ExitCode.FAILED, run.code());
            assertEquals(1, run.err().lines().count(), run::toString);
            assertTrue(run.err().contains("No space left on device"), run::toString);
            ChildProcess large = weft("--gm 7680 --gk 256 --gn 128").run();
            assertEquals(ExitCode.USAGE, large.code());
            assertEquals(1, large.err().lines().count(), large::toString);
            assertTrue(
                    large.err().contains("of shared memory, 512.0 KiB are free"), large::toString);
        } finally {
            assertEquals(0, new ProcessBuilder("umount", mount).start().waitFor());
        }
    }
}
