package dev.weft.fabric;

import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import dev.weft.fabric.memory.ShmJob;
import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.Transport;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Runs one body per rank on one kind of fabric and tells how each rank ended. */
record RankRunner(String kind, Launcher launcher) {

    /** Runs a body on every rank of a world of one kind. */
    private interface Launcher {
        void run(int ranks, Duration deadline, Outcomes outcomes, World.Body body);
    }

    Outcomes run(int ranks, Duration deadline, Ranks.Body body) {
        Outcomes outcomes = new Outcomes();
        launcher.run(ranks, deadline, outcomes, outcomes.recording(body));
        return outcomes;
    }

    /** How the ranks ended. */
    static final class Outcomes {
        private final Map<Integer, Throwable> failures = new ConcurrentHashMap<>();

        /** The body, with what it throws kept here. */
        private World.Body recording(Ranks.Body body) {
            return fabric -> {
                try {
                    body.run(Transport.of(fabric));
                } catch (Throwable e) {
                    failures.put(fabric.rank(), e);
                    throw e;
                }
            };
        }

        void assertNoFailure() {
            if (!failures.isEmpty()) {
                AssertionError error = new AssertionError("ranks failed: " + failures);
                failures.values().forEach(error::addSuppressed);
                throw error;
            }
        }

        Throwable of(int rank) {
            return failures.get(rank);
        }

        <T extends Throwable> T of(int rank, Class<T> type) {
            return assertInstanceOf(type, failures.get(rank), () -> "all: " + failures);
        }
    }

    /** Ranks that are threads on memory of their JVM. */
    static RankRunner threads() {
        return new RankRunner(
                "threads",
                (ranks, deadline, outcomes, body) -> {
                    try (World world = World.threads(ranks, deadline)) {
                        run(world, outcomes, body);
                    }
                });
    }

    /** Ranks that meet in a folder and map files, though all are threads of this JVM. */
    static RankRunner sharedMemory() {
        return new RankRunner(
                "processes",
                (ranks, deadline, outcomes, body) -> {
                    ThreadGroupRun threads = new ThreadGroupRun();
                    try (ShmJob job = ShmJob.create()) {
                        for (int r = 0; r < ranks; r++) {
                            Map<String, String> environment = job.environment(r, ranks, deadline);
                            threads.start(
                                    () -> {
                                        try (World world = World.joined(environment)) {
                                            run(world, outcomes, body);
                                        }
                                    });
                        }
                        threads.join();
                    }
                });
    }

    private static void run(World world, Outcomes outcomes, World.Body body) {
        try {
            world.run(body);
        } catch (RuntimeException | Error e) {
            // Kept by rank in the outcomes; only what no rank threw is a surprise.
            boolean known =
                    outcomes.failures.values().stream()
                            .anyMatch(failure -> failure == e || failure == e.getCause());
            if (!known) {
                throw e;
            }
        }
    }
}
