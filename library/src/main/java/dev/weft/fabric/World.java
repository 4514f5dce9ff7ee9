package dev.weft.fabric;

import dev.weft.fabric.FabricException.PeerFailedException;
import dev.weft.process.Uninterruptibly;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.stream.Stream;

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
 * any more. {@link #renew} closes it and returns the next one, in which operators are prepared
 * again:
 *
 * <pre>{@code
 * World world = World.auto(4);
 * while (true) {
 *     try (World current = world) {
 *         current.run(fabric -> serve(fabric));
 *         return;
 *     } catch (FabricException e) {
 *         world = world.renew();
 *     }
 * }
 * }</pre>
 *
 * <p>A world is used by one thread.
 */
public final class World implements AutoCloseable {

    /** The time without any progress after which a wait ends with an error. */
    public static final Duration DEFAULT_DEADLINE = Duration.ofSeconds(30);

    private final Launcher launcher;
    private final Map<String, String> environment;
    private final Duration deadlineOrNull;
    private final List<? extends Rank> ranks;
    private final Arena memory = Arena.ofShared();

    /** What ended the first run that failed, or null. */
    private Throwable failure;

    private World(
            Launcher launcher,
            int ranks,
            Map<String, String> environment,
            Duration deadlineOrNull) {
        this.launcher = launcher;
        this.environment = environment;
        this.deadlineOrNull = deadlineOrNull;
        try {
            this.ranks = launcher.join(ranks, environment, deadlineOrNull, memory);
        } catch (Throwable e) {
            memory.close();
            throw e;
        }
    }

    /**
     * A way to start ranks and to connect them, one for each {@link Fabric#kind}. Only for the
     * library itself, whose implementations a {@link ServiceLoader} finds.
     */
    public interface Launcher {

        /** As in {@link Fabric#kind}. */
        String kind();

        /**
         * Whether somebody has started this process as a rank of this kind.
         *
         * @throws IllegalStateException with a one-line message, if the launcher's environment
         *     variables are wrong
         */
        default boolean hasStarted(Map<String, String> environment) {
            return false;
        }

        /**
         * The ranks that this process runs; for processes, the one that it is. Called again once
         * they are closed, those of the next world.
         *
         * @param ranks the number of ranks, for threads
         * @param deadlineOrNull null for the environment's deadline, or else the default one
         * @param memory for threads; freed when the world is closed
         * @throws UnsupportedOperationException if there is no next world
         */
        List<? extends Rank> join(
                int ranks, Map<String, String> environment, Duration deadlineOrNull, Arena memory);
    }

    /** A rank of this process. Only for the library itself. */
    public interface Rank extends Fabric {

        /** Says that the rank begins to run; nothing if it has failed. */
        void present();

        /** Says that the rank signals no more; nothing if it has failed. */
        void leave();
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
        return launch("threads", ranks, System.getenv(), deadline);
    }

    private static World launch(
            String kind, int ranks, Map<String, String> environment, Duration deadlineOrNull) {
        Launcher launcher =
                launchers()
                        .filter(one -> one.kind().equals(kind))
                        .findFirst()
                        .orElseThrow(() -> new IllegalStateException("Weft lacks its " + kind));
        return new World(launcher, ranks, environment, deadlineOrNull);
    }

    private static Stream<Launcher> launchers() {
        return ServiceLoader.load(Launcher.class, World.class.getClassLoader()).stream()
                .map(ServiceLoader.Provider::get);
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
        String kind =
                launchers()
                        .filter(launcher -> launcher.hasStarted(environment))
                        .map(Launcher::kind)
                        .findFirst()
                        .orElse("threads");
        return launch(kind, ranks, environment, null);
    }

    /**
     * Like {@link #mpi(Duration)}, with the deadline that {@code weft launch --mpi} was given, or
     * else the default one.
     */
    public static World mpi() {
        return mpi(null);
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
        return launch("mpi", 1, System.getenv(), deadline);
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
        return launch("processes", 1, environment, null);
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
                    "this world has failed before (%s): expected World.renew(), or under MPI new processes"
                            .formatted(failure.getMessage()),
                    failure);
        }
        List<Outcome<T>> outcomes = new ArrayList<>();
        for (Rank rank : ranks) {
            rank.present();
            outcomes.add(new Outcome<>(rank, function, ranks.size() > 1));
        }
        if (ranks.size() == 1) {
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
            String name = "weft-rank-" + outcome.rank.rank();
            try {
                threads.add(Thread.ofPlatform().name(name).start(outcome));
            } catch (Throwable e) {
                // The system is out of threads: the running ranks must not wait for this one.
                outcome.failure = e;
                outcome.rank.fail(e);
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
        final Rank rank;
        final Function<T> function;
        final boolean leaves;
        T result;
        Throwable failure;

        /**
         * @param leaves whether the rank has nothing more to do once the body ends
         */
        Outcome(Rank rank, Function<T> function, boolean leaves) {
            this.rank = rank;
            this.function = function;
            this.leaves = leaves;
        }

        @Override
        public void run() {
            try {
                result = function.apply(rank);
            } catch (Throwable e) {
                failure = e;
                rank.fail(e);
            } finally {
                // Peers that still wait for this rank learn at once that it signals no more.
                if (leaves) {
                    rank.leave();
                }
            }
        }
    }

    /**
     * Closes this world, if it is not closed yet, and returns a new one with as many ranks and the
     * same deadline. Close operators and weights first: they belong to this world.
     *
     * <p>Threads begin again at once. Processes that {@code weft launch --restarts} has started
     * wait until all ranks have called this method or were started again. The launcher replaces a
     * rank that does not call it within the deadline and 5 s, and a new process for which others
     * have waited for 5 minutes. This method throws if the launcher does not answer for the
     * deadline and 5 s. If a rank is lost while they meet, they meet once more. If this method
     * throws, this world is closed; it may be called again.
     *
     * @throws UnsupportedOperationException with a one-line message, if nobody starts ranks again:
     *     under MPI, torchrun, or {@code weft launch} without {@code --restarts}
     * @throws IllegalStateException with a one-line message, if the launcher's restarts are used
     *     up, a rank has already ended, or the launcher is gone or does not answer
     */
    public World renew() {
        close();
        return new World(launcher, ranks.size(), environment, deadlineOrNull);
    }

    /** Does nothing the second time. */
    @Override
    public void close() {
        if (memory.scope().isAlive()) {
            ranks.forEach(Rank::close);
            memory.close();
        }
    }
}
