package dev.weft.cli.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.ChildProcess;
import dev.weft.fabric.memory.Renewals;
import dev.weft.fabric.memory.ShmJob;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Looks of the launcher, one at a time, at shells as ranks. {@link RestartIT} has real ranks. */
class RestartsIT {

    private static final int RANKS = 2;

    /** As much as counts between two looks. */
    private static final Duration STEP = Duration.ofMillis(500);

    @TempDir Path folder;

    private final StringWriter told = new StringWriter();
    private ShmJob job;
    private RankProcesses processes;
    private Restarts restarts;
    private long nowNs;

    @BeforeEach
    void prepare() throws IOException {
        Duration deadline = Duration.ofMinutes(1);
        job = ShmJob.create();
        processes = new RankProcesses(job, deadline);
        Renewals worlds = new Renewals(job, RANKS);
        restarts = new Restarts(processes, worlds, 1, deadline, new PrintWriter(told), () -> nowNs);
    }

    @AfterEach
    void end() {
        processes.close();
    }

    private void start(String script) throws IOException {
        for (int rank = 0; rank < RANKS; rank++) {
            processes.start(
                    new ProcessBuilder("sh", "-c", script).directory(folder.toFile()), RANKS);
        }
    }

    private void sayReady(int rank) throws IOException {
        Files.createFile(job.folder().resolve("rank-" + rank + ".ready"));
    }

    private static void await(BooleanSupplier condition) {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(ChildProcess.LIMIT_SECONDS);
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() < until);
            LockSupport.parkNanos(1_000_000);
        }
    }

    private void lookFor(Duration time) {
        for (long i = 0; i < time.dividedBy(STEP); i++) {
            nowNs += STEP.toNanos();
            assertFalse(restarts.areOver());
        }
    }

    /** It may have much to read. Only time for which another rank has waited counts. */
    @Test
    void aNewProcessHasFiveMinutesToJoin() throws Exception {
        start("exec sleep 1000");
        lookFor(Renewals.START.multipliedBy(2));
        sayReady(0);
        lookFor(Renewals.START);
        assertTrue(processes.isAlive(1));
        lookFor(STEP);
        await(() -> !processes.isAlive(1));
        lookFor(STEP);
        assertEquals("weft: rank 1 does not get ready: restart 1 of 1", told.toString().strip());
        assertTrue(processes.isAlive(1));
        // The look that starts a rank again counts for it.
        lookFor(Renewals.START.minus(STEP));
        assertTrue(processes.isAlive(1));
    }

    /** Also if it ended only just before it is started again. */
    @Test
    void ranksThatMeetAreToldOfADeath() throws Exception {
        start("test $WEFT_RANK = 0 && sleep 1000");
        await(() -> processes.hasFailed(1));
        assertFalse(restarts.areOver());
        assertEquals(
                "weft: rank 1 failed with exit code 1: restart 1 of 1", told.toString().strip());
        assertTrue(Files.exists(job.folder().resolve("rank-1.ended")));
    }

    /** One rank dies, the other one takes its time, and meanwhile is told that no world comes. */
    @Test
    void aCommandThatIsToldToEndStartsNothingAgain() throws Exception {
        start(
                "test $WEFT_RANK = 0 || trap '' TERM; : >here-$WEFT_RANK;"
                        + " while test -e here-$WEFT_RANK; do sleep 0.05; done");
        await(
                () ->
                        Files.exists(folder.resolve("here-0"))
                                && Files.exists(folder.resolve("here-1")));
        sayReady(1);
        processes.passOnSigterm();
        Thread ending = Thread.ofPlatform().start(processes::abandon);
        await(() -> processes.hasFailed(0));
        assertTrue(restarts.areOver());
        assertEquals(
                "no: the command was told to end",
                Files.readString(job.folder().resolve("rank-1.next")));
        assertTrue(processes.isAlive(1));
        Files.delete(folder.resolve("here-1"));
        processes.close();
        ending.join();
        assertFalse(processes.isAlive(1));
        assertEquals("", told.toString());
        assertFalse(Files.exists(job.folder()));
    }
}
