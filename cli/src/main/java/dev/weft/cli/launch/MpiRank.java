package dev.weft.cli.launch;

import dev.weft.cli.console.ExitCode;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.diagnosis.RankFailure;
import dev.weft.cli.message.RankLines;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.ffi.MpiEnvironment;
import dev.weft.process.ShutdownHooks;
import java.io.IOException;
import java.io.OutputStream;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * This process as a rank that MPI has started, and its messages to the command that started mpirun,
 * if it listens.
 */
public final class MpiRank {

    /** How often the first rank says that it runs. */
    private static final Duration ALIVE_EVERY = Duration.ofSeconds(1);

    /** Whether a rank of this process tells of signals by itself. */
    private static volatile boolean begun;

    /** Whether this process ends because the command that started it is gone. */
    private static volatile boolean gone;

    private final Duration deadline;

    /** Null until the ranks have met. */
    private volatile Fabric world;

    private MpiRank(Duration deadline) {
        this.deadline = deadline;
    }

    /**
     * Joins the other ranks and does its part.
     *
     * @param part returns the exit code, which is the same on all ranks
     */
    public static int call(Duration deadline, World.Function<Integer> part) {
        return new MpiRank(deadline).call(part);
    }

    /** Sent before the ranks leave: what goes wrong then does not affect the result. */
    public static void tellExit(int code) {
        if (RankFailure.isHeardByStarter()) {
            RankLines.tell(0, new MpiRankMessages.Exit(code));
        }
    }

    private int call(World.Function<Integer> part) {
        Thread hook = new Thread(MpiRank::tellOfSignal, "weft-told-to-end");
        if (!ShutdownHooks.add(hook)) {
            throw RankProcesses.toldToEnd();
        }
        begun = true;
        boolean tells = RankFailure.isHeardByStarter() && rank() == 0;
        int code = ExitCode.FAILED;
        try {
            if (RankFailure.isHeardByStarter()) {
                RankLines.tell(rank(), RankStart.current());
            }
            if (tells) {
                daemon("weft-starter-watch", this::watchStarter);
                daemon("weft-alive", this::tellOfLife);
            }
            try (World all = World.mpi(deadline)) {
                code =
                        all.call(
                                        fabric -> {
                                            world = fabric;
                                            if (tells) {
                                                RankLines.tell(0, new MpiRankMessages.Alive(true));
                                            }
                                            return part.apply(fabric);
                                        })
                                .getFirst();
            }
            return code;
        } catch (IllegalArgumentException | UsageException e) {
            code = ExitCode.USAGE;
            throw e;
        } finally {
            ShutdownHooks.remove(hook);
            if (tells) {
                tellExit(code);
            }
        }
    }

    private static int rank() {
        return MpiEnvironment.current().rank().orElse(0);
    }

    private static void daemon(String name, Runnable work) {
        Thread.ofPlatform().daemon().name(name).start(work);
    }

    /** Tells of a signal that has ended this process before it came to its part. */
    public static void tellOfSignalBefore() {
        if (!begun) {
            tellOfSignal();
        }
    }

    /** Launchers end all ranks when one dies, and leave no time for more than this. */
    private static void tellOfSignal() {
        if (gone) {
            return;
        }
        String signal = TerminationSignal.received().orElse("a signal");
        if (RankFailure.isHeardByStarter()) {
            RankLines.tell(rank(), new MpiRankMessages.Signal(signal));
        } else {
            System.err.println(
                    "weft: rank %s: ended by %s before the run was over; has another rank died?"
                            .formatted(rank(), signal));
        }
    }

    /**
     * The input that mpirun passes to the first rank ends when the command that started mpirun
     * ends, or wants the run to end: then nobody reads the ranks' reports. An mpirun that passes on
     * nothing of what the command wrote there ({@link MpiStart}) does not pass on its end either.
     */
    private void watchStarter() {
        try {
            if (System.in.transferTo(OutputStream.nullOutputStream()) == 0) {
                return;
            }
            Fabric joined = world;
            if (joined == null) {
                // The others have not met this rank yet: mpirun ends them.
                gone = true;
                RankFailure.tellStarter(
                        new IllegalStateException(MpiRankMessages.STARTER_GONE), false);
                System.exit(ExitCode.FAILED);
            } else {
                joined.fail(new IllegalStateException(MpiRankMessages.STARTER_GONE));
            }
        } catch (IOException e) {
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "no input", e);
        }
    }

    /**
     * The command cannot look at ranks on other hosts, but it hears whether this one runs. A rank
     * that has not met the others in time does not report that it runs: it should have given up.
     */
    private void tellOfLife() {
        long deadlineMs = deadline.toMillis();
        long everyMs = Math.min(ALIVE_EVERY.toMillis(), Math.max(1, deadlineMs / 4));
        try {
            for (long ms = 0; world != null || ms < deadlineMs; ms += everyMs) {
                RankLines.tell(0, new MpiRankMessages.Alive(world != null));
                TimeUnit.MILLISECONDS.sleep(everyMs);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
