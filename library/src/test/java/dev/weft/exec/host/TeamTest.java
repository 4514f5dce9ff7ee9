package dev.weft.exec.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

class TeamTest {

    private static Team team(AtomicReference<Throwable> failure, Runnable... tasks) {
        return new Team("test", tasks, task -> {}, failure::set);
    }

    @Test
    void everyTaskRunsOnceInEveryRound() {
        AtomicInteger first = new AtomicInteger();
        AtomicInteger second = new AtomicInteger();
        try (Team team =
                team(new AtomicReference<>(), first::incrementAndGet, second::incrementAndGet)) {
            team.await();
            for (int round = 1; round <= 4; round++) {
                team.start();
                team.await();
                assertEquals(round, first.get());
                assertEquals(round, second.get());
            }
        }
    }

    @Test
    void aTaskThatThrowsEndsItsRoundAndServesTheNext() {
        AtomicReference<Throwable> failure = new AtomicReference<>();
        AtomicInteger rounds = new AtomicInteger();
        RuntimeException broken = new IllegalStateException("broken");
        try (Team team =
                team(
                        failure,
                        () -> {
                            if (rounds.incrementAndGet() == 1) {
                                throw broken;
                            }
                        })) {
            team.start();
            team.await();
            assertSame(broken, failure.get());
            team.start();
            team.await();
        }
        assertEquals(2, rounds.get());
    }

    @Test
    void anInterruptIsPassedOnAfterTheRound() {
        AtomicInteger rounds = new AtomicInteger();
        try (Team team = team(new AtomicReference<>(), rounds::incrementAndGet)) {
            Thread.currentThread().interrupt();
            team.start();
            team.await();
            assertTrue(Thread.interrupted());
            assertEquals(1, rounds.get());
        }
    }

    @Test
    void whoAwaitsARoundRunsItsOwnTask() {
        AtomicReference<Throwable> failure = new AtomicReference<>();
        AtomicReference<Thread> ran = new AtomicReference<>();
        AtomicInteger others = new AtomicInteger();
        Runnable[] tasks = {others::incrementAndGet};
        Runnable awaited =
                () -> {
                    ran.set(Thread.currentThread());
                    throw new IllegalStateException("round " + others.get());
                };
        try (Team team = new Team("test", tasks, awaited, task -> {}, failure::set)) {
            for (int round = 1; round <= 3; round++) {
                ran.set(null);
                team.start();
                assertFalse(team.isDone());
                team.await();
                assertTrue(team.isDone());
                assertSame(Thread.currentThread(), ran.get());
                assertEquals(round, others.get());
                assertTrue(failure.get().getMessage().startsWith("round "));
                team.await();
            }
        }
    }
}
