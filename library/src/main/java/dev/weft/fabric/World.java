package dev.weft.fabric;

import dev.weft.fabric.memory.MemoryFabric;
import dev.weft.fabric.memory.RankEnvironment;
import dev.weft.fabric.memory.ThreadFabric;
import dev.weft.fabric.mpi.MpiProcess;
import dev.weft.ffi.MpiEnvironment;
import dev.weft.threads.Uninterruptibly;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * The ranks that this process runs: all ranks of a world as threads, or one rank of a world of
 * processes on one or more hosts. The code of a rank is the same in either case:
 *
 * <pre>{@code
 * try (World world = World.threads(4)) {
 *     world.run(fabric -> System.out.println("rank " + fabric.rank() + " of " + fabric.size()));
 * }
 * }</pre>
 *
 * <p>If a rank throws, the waits of all other ranks end with an error, and the world cannot be used
 * any more: close it and make a new one. Ranks that are processes cannot meet a second time, so
 * they have to be started again. A world is used by one thread.
 */
public final class World implements AutoCloseable {

    /** The time without any progress after which a wait ends with an error. */
    public static final Duration DEFAULT_DEADLINE = Duration.ofSeconds(30);

    private final MemoryFabric[] fabrics;
    private final Runnable release;

    /** What ended the first run that failed, or null. */
    private Throwable failure;

    private World(MemoryFabric[] fabrics, Runnable release) {
        this.fabrics = fabrics;
        this.release = release;
    }

    /** The code of a rank. */
    @FunctionalInterface
    public interface Body {
        void run(Fabric fabric) throws Exception;
    }

    /** The code of a rank, with a result. */
    @FunctionalInterface
    public interface Function<T> {
        T apply(Fabric fabric) throws Exception;
    }

    /** A world of {@code ranks} threads of this JVM, with the default deadline. */
    public static World threads(int ranks) {
        return threads(ranks, DEFAULT_DEADLINE);
    }

    /** A world of {@code ranks} threads of this JVM. */
    public static World threads(int ranks, Duration deadline) {
        MemoryFabric.checkRanks(ranks);
        MemoryFabric.checkDeadline(deadline);
        Arena arena = Arena.ofShared();
        return new World(ThreadFabric.world(ranks, deadline, arena), arena::close);
    }

    /**
     * The world that this process was started for: a rank under MPI ({@link #mpi}), a rank that
     * {@code weft launch} or torchrun started ({@link #joined}), or, if neither, a world of {@code
     * ranks} threads. So the same program runs in all three ways.
     *
     * @throws IllegalStateException with a one-line message, if the launcher's environment
     *     variables are wrong
     */
    public static World auto(int ranks) {
        return auto(ranks, System.getenv());
    }

    static World auto(int ranks, Map<String, String> environment) {
        MemoryFabric.checkRanks(ranks);
        if (mpiEnvironment(environment).launched()) {
            return mpi();
        }
        return RankEnvironment.isSet(environment) ? joined(environment) : threads(ranks);
    }

    private static MpiEnvironment mpiEnvironment(Map<String, String> environment) {
        try {
            return MpiEnvironment.of(environment);
        } catch (IllegalArgumentException e) {
            throw new IllegalStateException(e.getMessage(), e);
        }
    }

    /**
     * Like {@link #mpi(Duration)}, with the deadline that {@code weft launch --mpi} was given, or
     * else the default one.
     */
    public static World mpi() {
        return mpi(RankEnvironment.deadline(System.getenv(), DEFAULT_DEADLINE));
    }

    /**
     * This process as a rank that mpirun or srun started. Initialises MPI, unless the program has
     * already done so with MPI_THREAD_MULTIPLE. Can be called once per process, since MPI cannot be
     * initialised again. After a failure the world closes without MPI_Finalize, which would wait
     * for ranks that are gone.
     *
     * @throws IllegalStateException with a one-line message, if there is no MPI to join
     */
    public static World mpi(Duration deadline) {
        MemoryFabric.checkDeadline(deadline);
        mpiEnvironment(System.getenv());
        return new World(new MemoryFabric[] {MpiProcess.join(deadline)}, () -> {});
    }

    /**
     * The rank that this process's environment variables name: {@code WEFT_RANK} and others, as
     * {@code weft launch} sets them, or {@code RANK} (or {@code LOCAL_RANK}), {@code WORLD_SIZE},
     * {@code MASTER_ADDR} and {@code MASTER_PORT}, as torchrun does. All ranks are on this host.
     *
     * @throws IllegalArgumentException with a one-line message, if they name none
     */
    public static World joined() {
        return joined(System.getenv());
    }

    static World joined(Map<String, String> environment) {
        MemoryFabric fabric = RankEnvironment.join(environment, DEFAULT_DEADLINE);
        return new World(new MemoryFabric[] {fabric}, () -> {});
    }

    /** Runs the body once per rank of this process and returns when all have ended. */
    public void run(Body body) {
        call(
                fabric -> {
                    body.run(fabric);
                    return null;
                });
    }

    /** Runs the function once per rank of this process and returns the results in rank order. */
    public <T> List<T> call(Function<T> function) {
        if (failure != null) {
            throw new IllegalStateException(
                    "this world has failed before (%s): expected a new World; under MPI, new processes"
                            .formatted(failure.getMessage()),
                    failure);
        }
        List<Outcome<T>> outcomes = new ArrayList<>();
        for (MemoryFabric fabric : fabrics) {
            fabric.health.present();
            outcomes.add(new Outcome<>(fabric, function, fabrics.length > 1));
        }
        if (fabrics.length == 1) {
            outcomes.getFirst().run();
        } else {
            runThreads(outcomes);
        }
        rethrow(outcomes);
        return outcomes.stream().map(outcome -> outcome.result).toList();
    }

    private static <T> void runThreads(List<Outcome<T>> outcomes) {
        List<Thread> threads = new ArrayList<>();
        for (Outcome<T> outcome : outcomes) {
            String name = "weft-rank-" + outcome.fabric.rank();
            try {
                threads.add(Thread.ofPlatform().name(name).start(outcome));
            } catch (Throwable e) {
                // The system is out of threads: the running ranks must not wait for this one.
                outcome.failure = e;
                outcome.fabric.fail(e);
            }
        }
        // The ranks' memory must not be freed while they use it.
        Uninterruptibly.join(threads);
    }

    /** Throws the first cause; the errors of its peers are added as suppressed ones. */
    private <T> void rethrow(List<Outcome<T>> outcomes) {
        Throwable cause = null;
        for (Outcome<T> outcome : outcomes) {
            Throwable own = outcome.failure;
            if (own != null
                    && (cause == null
                            || cause instanceof PeerFailedException
                                    && !(own instanceof PeerFailedException))) {
                cause = own;
            }
        }
        if (cause == null) {
            return;
        }
        failure = cause;
        for (Outcome<T> outcome : outcomes) {
            if (outcome.failure != null && outcome.failure != cause) {
                cause.addSuppressed(outcome.failure);
            }
        }
        switch (cause) {
            case RuntimeException e -> throw e;
            case Error e -> throw e;
            case IOException e -> throw new UncheckedIOException(e.getMessage(), e);
            default -> throw new IllegalStateException(cause.toString(), cause);
        }
    }

    /** One rank's run. */
    private static final class Outcome<T> implements Runnable {
        final MemoryFabric fabric;
        final Function<T> function;
        final boolean leaves;
        T result;
        Throwable failure;

        /**
         * @param leaves whether the rank has nothing more to do once the body ends
         */
        Outcome(MemoryFabric fabric, Function<T> function, boolean leaves) {
            this.fabric = fabric;
            this.function = function;
            this.leaves = leaves;
        }

        @Override
        public void run() {
            try {
                result = function.apply(fabric);
            } catch (Throwable e) {
                failure = e;
                fabric.fail(e);
            } finally {
                // Peers that still wait for this rank learn at once that it signals no more.
                if (leaves) {
                    fabric.health.leave();
                }
            }
        }
    }

    @Override
    public void close() {
        for (MemoryFabric fabric : fabrics) {
            fabric.close();
        }
        release.run();
    }
}
