package dev.weft.stress;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Runs a case with threads of this process as ranks. */
final class ThreadRanks {

    private final Case run;
    private final AtomicLong faultMs = new AtomicLong();
    private final AtomicInteger running;
    private final CountDownLatch othersEnded = new CountDownLatch(1);
    private final RankEnd[] ends;

    private ThreadRanks(Case run) {
        this.run = run;
        this.running = new AtomicInteger(run.ranks());
        this.ends = new RankEnd[run.ranks()];
    }

    static Ending run(Case run) {
        return new ThreadRanks(run).run();
    }

    private Ending run() {
        // On a thread of its own: ranks that hang are to be told of, not to be waited for.
        Thread ranks = Thread.ofPlatform().daemon().name("case").start(this::live);
        try {
            ranks.join(run.timeoutMs());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        for (int rank = 0; rank < ends.length; rank++) {
            ends[rank] = ends[rank] == null ? hung(rank) : ends[rank];
        }
        return new Ending(run, faultMs.get() > 0, List.of(ends), List.of());
    }

    private static RankEnd hung(int rank) {
        String name = "weft-rank-" + rank;
        String stack =
                Thread.getAllStackTraces().entrySet().stream()
                        .filter(thread -> thread.getKey().getName().equals(name))
                        .map(thread -> Arrays.toString(thread.getValue()))
                        .findFirst()
                        .orElse("");
        return RankEnd.of(rank, RankEnd.How.HUNG, "", -1, 0, stack);
    }

    private void live() {
        try (World world = World.threads(run.ranks(), Duration.ofMillis(run.deadlineMs()))) {
            world.run(
                    fabric -> {
                        int rank = fabric.rank();
                        try {
                            ends[rank] = live(rank, fabric);
                        } catch (RuntimeException | Error e) {
                            long afterMs = System.currentTimeMillis() - faultMs.get();
                            ends[rank] = RankEnd.of(rank, e, afterMs);
                            throw e;
                        } finally {
                            if (running.decrementAndGet() <= 1) {
                                othersEnded.countDown();
                            }
                        }
                    });
        } catch (RuntimeException | Error e) {
            // Each rank's own error is in its end.
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "the case's error", e);
        }
    }

    private RankEnd live(int rank, Fabric fabric) {
        Injector injector =
                new Injector(
                        run, rank, new ThreadEnd(), () -> faultMs.set(System.currentTimeMillis()));
        Workload.Tally tally = new Workload(run, injector).on(fabric);
        injector.at(Fault.Phase.CLOSE);
        return RankEnd.right(rank, tally);
    }

    /**
     * A thread cannot be killed: it throws what nobody expects, or sits until all others are gone.
     */
    private final class ThreadEnd implements Injector.End {
        @Override
        public void kill() {
            throw new Injector.Killed("killed");
        }

        @Override
        public void freeze() {
            try {
                if (!othersEnded.await(3 * run.deadlineMs() + 30_000, TimeUnit.MILLISECONDS)) {
                    throw new Injector.Killed("frozen, and the others did not end");
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            throw new Injector.Killed("frozen");
        }
    }
}
