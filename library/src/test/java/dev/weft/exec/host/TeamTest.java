package dev.weft.exec.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.Scratch;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.Operator.PendingCall;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

class TeamTest {

    private final AtomicReference<Throwable> failure = new AtomicReference<>();

    private static Team team(int threads) {
        Team team = new Team("test");
        team.reserve(threads);
        return team;
    }

    private void start(Team team, Runnable... tasks) {
        team.start(tasks, null, failure::set);
    }

    @Test
    void everyTaskRunsOnceInEveryRound() {
        AtomicInteger first = new AtomicInteger();
        AtomicInteger second = new AtomicInteger();
        try (Team team = team(2)) {
            team.await();
            for (int round = 1; round <= 4; round++) {
                start(team, first::incrementAndGet, second::incrementAndGet);
                team.await();
                assertEquals(round, first.get());
                assertEquals(round, second.get());
            }
        }
    }

    @Test
    void aTaskThatThrowsEndsItsRoundAndServesTheNext() {
        AtomicInteger rounds = new AtomicInteger();
        RuntimeException broken = new IllegalStateException("broken");
        Runnable task =
                () -> {
                    if (rounds.incrementAndGet() == 1) {
                        throw broken;
                    }
                };
        try (Team team = team(1)) {
            start(team, task);
            team.await();
            assertSame(broken, failure.get());
            start(team, task);
            team.await();
        }
        assertEquals(2, rounds.get());
    }

    @Test
    void anInterruptIsPassedOnAfterTheRound() {
        AtomicInteger rounds = new AtomicInteger();
        try (Team team = team(1)) {
            Thread.currentThread().interrupt();
            start(team, rounds::incrementAndGet);
            team.await();
            assertTrue(Thread.interrupted());
            assertEquals(1, rounds.get());
        }
    }

    @Test
    void whoAwaitsARoundRunsItsOwnTask() {
        AtomicReference<Thread> ran = new AtomicReference<>();
        AtomicInteger others = new AtomicInteger();
        Runnable[] tasks = {others::incrementAndGet};
        Runnable awaited =
                () -> {
                    ran.set(Thread.currentThread());
                    throw new IllegalStateException("round " + others.get());
                };
        try (Team team = team(1)) {
            for (int round = 1; round <= 3; round++) {
                ran.set(null);
                team.start(tasks, awaited, failure::set);
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

    @Test
    void workingMemoryIsKeptUntilMoreIsNeeded() {
        Gemm gemm = Gemms.byName("scalar");
        try (Team team = team(1)) {
            Scratch small = team.scratch(0, gemm, 8, 8);
            assertSame(small, team.scratch(0, gemm, 8, 4));
            assertNotSame(small, team.scratch(1, gemm, 8, 8));
            Scratch wide = team.scratch(0, gemm, 8, 64);
            assertNotSame(small, wide);
            // Every operator has an engine object of its own.
            assertSame(wide, team.scratch(0, Gemms.byName("scalar"), 8, 8));
        }
    }

    @Test
    void operatorsOfARankUseTheSameThreadsInTurnsAndOthersAtOnce() {
        Matrix b = Matrix.copyOf(Arena.ofAuto(), new float[][] {{2}});
        Matrix a = Matrix.copyOf(Arena.ofAuto(), new float[][] {{3}, {5}});
        try (World world = World.threads(1)) {
            world.run(
                    fabric -> {
                        Transport rank = Transport.of(fabric);
                        Teams teams = Teams.join(rank);
                        Team one = teams.take(1);
                        Team other = teams.take(3);
                        assertNotSame(one, other);
                        teams.giveBack(other);
                        teams.giveBack(one);
                        assertSame(teams, Teams.join(rank));
                        assertSame(one, teams.take(2));
                        teams.giveBack(one);
                        try (AllGatherMatmul first = operator(fabric, b);
                                AllGatherMatmul second = operator(fabric, b)) {
                            // A call of the second one while the first one's is under way.
                            PendingCall<Matrix> pending = first.start(a);
                            assertEquals(10, second.call(a).product().get(1, 0));
                            assertEquals(6, pending.await().product().get(0, 0));
                        }
                        teams.leave();
                        teams.leave();
                        assertNotSame(teams, Teams.join(rank));
                    });
        }
    }

    private static AllGatherMatmul operator(Fabric fabric, Matrix b) {
        return AllGatherMatmul.on(fabric)
                .a(Shards.of(2), DType.FP32)
                .b(b)
                .computeWorkers(2)
                .prepare();
    }
}
