package dev.weft.fabric;

import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import dev.weft.fabric.memory.ShmJob;
import dev.weft.fabric.transport.Transport;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Runs one body per rank on one kind of fabric and tells how each rank ended. */
interface RankRunner {

    /** What {@link Transport#kind} says. */
    String kind();

    Outcomes run(int ranks, Duration deadline, World.Body body);

    /** How the ranks ended. */
    final class Outcomes {
        private final Map<Integer, Throwable> failures = new ConcurrentHashMap<>();

        /** The body, with what it throws kept here. */
        World.Body recording(World.Body body) {
            return fabric -> {
                try {
                    body.run(fabric);
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
        return new RankRunner() {
            @Override
            public String kind() {
                return "threads";
            }

            @Override
            public Outcomes run(int ranks, Duration deadline, World.Body body) {
                Outcomes outcomes = new Outcomes();
                try (World world = World.threads(ranks, deadline)) {
                    runRecorded(world, outcomes, body);
                }
                return outcomes;
            }
        };
    }

    /** Ranks that meet in a folder and map files, though all are threads of this JVM. */
    static RankRunner sharedMemory() {
        return new RankRunner() {
            @Override
            public String kind() {
                return "processes";
            }

            @Override
            public Outcomes run(int ranks, Duration deadline, World.Body body) {
                Outcomes outcomes = new Outcomes();
                ThreadGroupRun threads = new ThreadGroupRun();
                try (ShmJob job = ShmJob.create()) {
                    for (int r = 0; r < ranks; r++) {
                        Map<String, String> environment = job.environment(r, ranks, deadline);
                        threads.start(
                                () -> {
                                    try (World world = World.joined(environment)) {
                                        runRecorded(world, outcomes, body);
                                    }
                                });
                    }
                    threads.join();
                }
                return outcomes;
            }
        };
    }

    private static void runRecorded(World world, Outcomes outcomes, World.Body body) {
        try {
            world.run(outcomes.recording(body));
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
