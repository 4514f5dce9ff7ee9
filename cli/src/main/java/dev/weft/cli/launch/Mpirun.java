package dev.weft.cli.launch;

import dev.weft.cli.console.RunFailedException;
import dev.weft.process.ShutdownHooks;
import java.io.IOException;
import java.util.concurrent.TimeUnit;

/**
 * A process of mpirun. However this process ends, except by SIGKILL, mpirun ends first, and with it
 * the ranks. Used by one thread.
 */
abstract class Mpirun {

    /** From SIGTERM to SIGKILL. */
    static final long TERM_MS = 3_000;

    private final ProcessBuilder builder;

    /** Null until it is started. */
    private Process process;

    private boolean ended;

    Mpirun(ProcessBuilder builder) {
        this.builder = builder;
    }

    /** Starts it and returns the exit code of the command. */
    public final int run() throws IOException {
        Thread hook = new Thread(this::abandon, "weft-abandon");
        if (!ShutdownHooks.add(hook)) {
            throw RankProcesses.toldToEnd();
        }
        start();
        try {
            return await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new RunFailedException("interrupted");
        } finally {
            end();
            ShutdownHooks.remove(hook);
        }
    }

    private synchronized void start() throws IOException {
        if (ended) {
            throw RankProcesses.toldToEnd();
        }
        process = builder.start();
    }

    final Process process() {
        return process;
    }

    /** Returns the exit code when it has ended or must be ended. */
    abstract int await() throws InterruptedException;

    /** This process was told to end: it ends its ranks. */
    void abandon() {
        end();
    }

    final synchronized void end() {
        boolean runs = !ended && process != null;
        ended = true;
        if (runs) {
            stop();
        }
    }

    /** Ends it and the ranks if they are still running. */
    abstract void stop();

    final boolean hasEnded(long withinMs) {
        process.onExit().completeOnTimeout(process, withinMs, TimeUnit.MILLISECONDS).join();
        return !process.isAlive();
    }
}
