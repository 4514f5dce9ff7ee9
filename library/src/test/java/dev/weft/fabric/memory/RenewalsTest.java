package dev.weft.fabric.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How ranks and a starter that starts them again agree on the next world. */
class RenewalsTest {

    private static final Duration LONG = Duration.ofSeconds(60);

    @TempDir Path temporary;

    /** A rank of this process, on another thread, as if it was started by the job. */
    private static CompletableFuture<MemoryFabric> join(ShmJob job, int rank, int ranks) {
        Map<String, String> environment = job.environment(rank, ranks, LONG);
        return CompletableFuture.supplyAsync(
                () -> RankEnvironment.join(environment, null),
                task -> Thread.ofPlatform().start(task));
    }

    private static void awaitReady(Renewals worlds, int rank) {
        long until = System.nanoTime() + LONG.toNanos();
        while (!worlds.isReady(rank)) {
            assertTrue(System.nanoTime() < until, "rank " + rank + " is not ready");
            LockSupport.parkNanos(1_000_000);
        }
    }

    private static String refusal(CompletableFuture<?> joining) {
        Throwable cause = assertThrows(CompletionException.class, joining::join).getCause();
        return assertInstanceOf(IllegalStateException.class, cause).getMessage();
    }

    @Test
    void ranksMeetInOneWorldAfterTheOther() throws Exception {
        try (ShmJob job = ShmJob.create(temporary)) {
            Renewals worlds = new Renewals(job, 2);
            for (int world = 0; world < 3; world++) {
                var first = join(job, 0, 2);
                var second = join(job, 1, 2);
                awaitReady(worlds, 0);
                awaitReady(worlds, 1);
                assertEquals(world, worlds.count());
                worlds.begin();
                first.join().close();
                second.join().close();
                assertFalse(worlds.isReady(0));
                assertTrue(Files.exists(job.world(world)));
                assertFalse(world > 0 && Files.exists(job.world(world - 1)));
            }
        }
    }

    @Test
    void aRankThatIsLostWhileRanksMeetIsMetInTheNextWorld() throws Exception {
        try (ShmJob job = ShmJob.create(temporary)) {
            Renewals worlds = new Renewals(job, 2);
            var first = join(job, 0, 2);
            awaitReady(worlds, 0);
            worlds.begin();
            job.ended(1);
            worlds.forget(1);
            awaitReady(worlds, 0);
            var second = join(job, 1, 2);
            awaitReady(worlds, 1);
            worlds.begin();
            first.join().close();
            second.join().close();
        }
    }

    @Test
    void aRankIsToldWhyThereIsNoNextWorld() throws Exception {
        try (ShmJob job = ShmJob.create(temporary)) {
            Renewals worlds = new Renewals(job, 1);
            var joining = join(job, 0, 1);
            awaitReady(worlds, 0);
            worlds.refuse(0, "rank 7 is gone");
            assertEquals("the ranks do not meet again: rank 7 is gone", refusal(joining));
        }
    }

    @Test
    void aRankDoesNotWaitForEverForAStarterThatDoesNothing() throws Exception {
        try (ShmJob job = ShmJob.create(temporary)) {
            Renewals worlds = new Renewals(job, 2);
            Map<String, String> environment = job.environment(0, 2, Duration.ofMillis(1));
            var message =
                    assertThrows(
                                    IllegalStateException.class,
                                    () -> RankEnvironment.join(environment, null))
                            .getMessage();
            assertEquals(
                    "the command that started this rank has not answered for 5001 ms", message);
            assertFalse(worlds.isReady(0));
        }
    }

    @Test
    void aSecondProcessOfTheSameRankIsRefused() throws Exception {
        try (ShmJob job = ShmJob.create(temporary)) {
            Renewals worlds = new Renewals(job, 2);
            var first = join(job, 0, 2);
            awaitReady(worlds, 0);
            Map<String, String> environment = job.environment(0, 2, LONG);
            String message =
                    assertThrows(
                                    IllegalArgumentException.class,
                                    () -> RankEnvironment.join(environment, null))
                            .getMessage();
            assertEquals("rank 0 is taken by another process in " + job.folder(), message);
            worlds.refuse(0, "the test is over");
            refusal(first);
        }
    }

    @Test
    void aRankThatWaitsNoticesThatTheStarterIsGoneAndNothingIsLeft() throws Exception {
        ShmJob job = ShmJob.create(temporary);
        Renewals worlds = new Renewals(job, 1);
        var joining = join(job, 0, 1);
        awaitReady(worlds, 0);
        worlds.begin();
        joining.join().close();
        var again = join(job, 0, 1);
        awaitReady(worlds, 0);
        job.close();
        String message = refusal(again);
        assertTrue(message.startsWith("the command that started this rank is gone"), message);
        assertFalse(Files.exists(job.folder()));
    }
}
