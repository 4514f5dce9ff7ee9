package dev.weft.cli.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.ChildProcess;
import dev.weft.cli.SharedMemory;
import dev.weft.cli.console.ExitCode;
import dev.weft.process.EveryOtherCase;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code weft launch --restarts} with a fault at each moment of a restart. */
@Execution(ExecutionMode.CONCURRENT)
class RestartIT {

    private static final String KILLED = "weft: rank %d was ended by signal 9: restart %d of 3";

    @TempDir Path folder;

    private SharedMemory shared;
    private ChildProcess launch;

    @BeforeEach
    void makeSharedMemory() throws IOException {
        shared = SharedMemory.create();
    }

    @AfterEach
    void end() {
        launch.close();
    }

    private void launch(String options) throws IOException {
        List<String> arguments = new ArrayList<>(List.of(("launch " + options).split(" ")));
        arguments.addAll(ChildProcess.java());
        arguments.addAll(List.of(RestartedRank.class.getName(), folder.toString()));
        launch =
                ChildProcess.weft(folder, arguments)
                        .environment(SharedMemory.VARIABLE, shared.folder())
                        .start();
    }

    private void launch() throws IOException {
        launch("-n 2 --restarts 3 --deadline 3s");
    }

    /** From now on the rank stops at this moment. */
    private void hold(int rank, String moment) throws IOException {
        Files.createFile(folder.resolve("hold-" + rank + "-" + moment));
    }

    private void release(int rank, String moment) throws IOException {
        Files.delete(folder.resolve("hold-" + rank + "-" + moment));
    }

    /** Waits until the rank is at a moment at which it is held; returns its process. */
    private long awaitAt(int rank, String moment) throws Exception {
        Path at = folder.resolve("at-" + rank + "-" + moment);
        launch.await(() -> Files.exists(at) && Files.readString(at).endsWith("\n"));
        long pid = Long.parseLong(Files.readString(at).trim());
        Files.delete(at);
        return pid;
    }

    /** Waits for the rank at a moment and kills it there; the next one passes. */
    private void killAt(int rank, String moment) throws Exception {
        long pid = awaitAt(rank, moment);
        ChildProcess.signal("KILL", pid);
        release(rank, moment);
    }

    private void awaitFile(String name) throws Exception {
        launch.await(
                () -> {
                    try (Stream<Path> files = Files.walk(shared.folder())) {
                        return files.anyMatch(file -> file.toString().endsWith(name));
                    } catch (UncheckedIOException e) {
                        return false; // a file was removed meanwhile
                    }
                });
    }

    /** Rank 1, held at its start, meets a rank 0 that is stopped, and is killed then. */
    private void killWhileMeeting(int world) throws Exception {
        awaitFile("rank-0.ready");
        long stopped = launch.awaitRank(0, () -> true).pid();
        ChildProcess.signal("STOP", stopped);
        long meeting = awaitAt(1, "start");
        release(1, "start");
        awaitFile("world-" + world + "/rank-1.control");
        ChildProcess.signal("KILL", meeting);
        ChildProcess.signal("CONT", stopped);
    }

    /** All ranks end well, and the command has told of just these restarts. */
    private void assertRecovered(int ranks, String... told) throws Exception {
        assertEquals(0, launch.code(), launch::toString);
        assertEquals(List.of(told), told(), launch::toString);
        assertEquals(
                IntStream.range(0, ranks).mapToObj(r -> "rank " + r + " is done").toList(),
                launch.out().lines().filter(line -> line.endsWith(" done")).sorted().toList());
        shared.assertEmpty();
    }

    private List<String> told() {
        return launch.err().lines().filter(line -> line.startsWith("weft: ")).toList();
    }

    /** Rank 1 is killed at the first moment, the one that replaces it at the second, and so on. */
    @Test
    void aKilledRankIsReplacedAndSoIsItsReplacement() throws Exception {
        String[] moments = {"start", "prepare", "call", "start", "prepare"};
        hold(1, moments[0]);
        launch("-n 2 --restarts 5 --deadline 3s");
        for (int i = 0; i < moments.length; i++) {
            long pid = awaitAt(1, moments[i]);
            if (i + 1 < moments.length) {
                hold(1, moments[i + 1]);
            }
            ChildProcess.signal("KILL", pid);
            release(1, moments[i]);
        }
        assertRecovered(
                2,
                IntStream.rangeClosed(1, moments.length)
                        .mapToObj("weft: rank 1 was ended by signal 9: restart %d of 5"::formatted)
                        .toArray(String[]::new));
    }

    @Test
    void aRankIsKilledWhileRanksMeetForTheFirstTimeAndAgain() throws Exception {
        hold(1, "start");
        hold(1, "call");
        launch();
        killWhileMeeting(0);
        long second = awaitAt(1, "call");
        hold(1, "start");
        ChildProcess.signal("KILL", second);
        release(1, "call");
        killWhileMeeting(2);
        assertRecovered(2, KILLED.formatted(1, 1), KILLED.formatted(1, 2), KILLED.formatted(1, 3));
    }

    @Test
    void aRankIsKilledWhileItRenews() throws Exception {
        hold(1, "call");
        hold(0, "renew");
        launch("-n 3 --restarts 3 --deadline 3s");
        killAt(1, "call");
        killAt(0, "renew");
        assertRecovered(3, KILLED.formatted(1, 1), KILLED.formatted(0, 2));
    }

    @Test
    void allRanksAreKilledAtOnce() throws Exception {
        hold(0, "call");
        hold(1, "call");
        launch();
        long first = awaitAt(0, "call");
        ChildProcess.signal("KILL", first, awaitAt(1, "call"));
        release(0, "call");
        release(1, "call");
        assertEquals(0, launch.code(), launch::toString);
        assertEquals(2, told().size(), launch::toString);
        shared.assertEmpty();
    }

    @Test
    void aStoppedRankIsReplaced() throws Exception {
        hold(1, "call");
        launch();
        long pid = awaitAt(1, "call");
        ChildProcess.signal("STOP", pid);
        release(1, "call");
        assertRecovered(2, "weft: rank 1 is stopped: restart 1 of 3");
    }

    @Test
    void aRankThatDoesNotRenewIsReplaced() throws Exception {
        hold(1, "call");
        hold(0, "renew");
        launch("-n 2 --restarts 3 --deadline 2s");
        killAt(1, "call");
        awaitAt(0, "renew");
        launch.await(() -> told().size() == 2);
        release(0, "renew");
        assertRecovered(
                2, KILLED.formatted(1, 1), "weft: rank 0 does not get ready: restart 2 of 3");
    }

    /** Ranks that handle SIGTERM can end well. */
    @Test
    void sigtermIsPassedOnToTheRanks() throws Exception {
        hold(1, "call");
        launch();
        awaitAt(1, "call");
        ProcessHandle rank = launch.awaitRank(0, () -> true);
        ChildProcess.signal("TERM", launch.pid());
        assertEquals(128 + 15, launch.code(), launch::toString);
        assertEquals(List.of("weft: ended by SIGTERM"), told(), launch::toString);
        assertTrue(launch.out().contains("rank 0 exits"), launch::toString);
        assertFalse(rank.isAlive());
        shared.assertEmpty();
    }

    /** A rank that handles SIGTERM waits for a world when the command is told to end. */
    @Test
    void aRankThatWaitsForAWorldHearsThatThereIsNone() throws Exception {
        Files.createFile(folder.resolve("ignore-sigterm-0"));
        hold(1, "start");
        launch("-n 2 --restarts 3 --deadline 20s");
        awaitAt(1, "start");
        awaitFile("rank-0.ready");
        ChildProcess.signal("TERM", launch.pid());
        assertEquals(128 + 15, launch.code(), launch::toString);
        assertTrue(
                launch.err().contains("the ranks do not meet again: the command was told to end"),
                launch::toString);
        shared.assertEmpty();
    }

    @Test
    void ranksThatThrowRenewWithoutARestart() throws Exception {
        Files.createFile(folder.resolve("fail-1"));
        launch();
        assertRecovered(2, "weft: all ranks meet again without a restart: renewal 1 of 3");
        assertTrue(launch.out().contains("rank 1 renews: no such request"), launch::toString);
    }

    @Test
    void theyDoNotRenewForEver() throws Exception {
        Files.createFile(folder.resolve("fail-0"));
        Files.createFile(folder.resolve("fail-1"));
        launch("-n 2 --restarts 1 --deadline 3s");
        assertEquals(ExitCode.FAILED, launch.code(), launch::toString);
        assertTrue(
                launch.err()
                        .contains(
                                "the ranks do not meet again: they have done so 1 times without a"
                                        + " restart"),
                launch::toString);
        shared.assertEmpty();
    }

    @Test
    void whenAllRestartsAreUsedUpTheCommandFails() throws Exception {
        hold(1, "call");
        launch("-n 2 --restarts 1 --deadline 3s");
        ChildProcess.signal("KILL", awaitAt(1, "call"));
        ChildProcess.signal("KILL", awaitAt(1, "call"));
        assertEquals(128 + 9, launch.code(), launch::toString);
        assertEquals(
                List.of(
                        "weft: rank 1 was ended by signal 9: restart 1 of 1",
                        "weft: rank 1 was ended by signal 9"),
                told());
        assertTrue(
                launch.err()
                        .contains(
                                "the ranks do not meet again: rank 1 was ended by signal 9, and all"
                                        + " restarts are used up (--restarts 1)"),
                launch::toString);
        shared.assertEmpty();
    }

    @Test
    void aRankThatHasEndedWellIsNotMetAgain() throws Exception {
        hold(1, "end");
        launch();
        long last = awaitAt(1, "end");
        launch.await(() -> ProcessHandle.of(last).isPresent() && !hasRank(0));
        ChildProcess.signal("KILL", last);
        release(1, "end");
        assertEquals(ExitCode.FAILED, launch.code(), launch::toString);
        assertTrue(
                launch.err().contains("the ranks do not meet again: rank 0 has already ended"),
                launch::toString);
        shared.assertEmpty();
    }

    private boolean hasRank(int rank) {
        return launch.process().descendants().anyMatch(one -> ChildProcess.isRank(one, rank));
    }

    @EveryOtherCase
    @ParameterizedTest
    @ValueSource(strings = {"start", "prepare", "renew"})
    void ifTheCommandIsKilledAllRanksEnd(String moment) throws Exception {
        hold(1, "call");
        int late = moment.equals("renew") ? 0 : 1;
        launch();
        long first = awaitAt(1, "call");
        hold(late, moment);
        ChildProcess.signal("KILL", first);
        release(1, "call");
        awaitAt(late, moment);
        ProcessHandle held = launch.awaitRank(late, () -> true);
        ProcessHandle other = launch.awaitRank(1 - late, () -> true);
        ChildProcess.signal("KILL", launch.pid());
        ChildProcess.awaitEnd(List.of(other));
        release(late, moment);
        ChildProcess.awaitEnd(List.of(held));
        shared.assertEmpty();
        String gone = "IllegalStateException: the command that started this rank is gone";
        assertEquals(3, launch.err().split(gone, -1).length, launch::toString);
    }
}
