package dev.weft.cli.launch;

import dev.weft.cli.console.RunFailedException;
import dev.weft.files.ShutdownHooks;
import java.io.File;
import java.io.IOException;
import java.util.concurrent.TimeUnit;

/**
 * Any program as ranks of mpirun. However this process ends, except by SIGKILL, mpirun ends, and
 * with it the ranks. Used by one thread.
 */
final class MpiProgram {

    /** A terminal's signal also reaches mpirun; a second one would make it leave ranks behind. */
    private static final long BY_ITSELF_MS = 2_000;

    private static final long TERM_MS = 3_000;

    private final ProcessBuilder builder;
    private Process mpirun;
    private boolean ending;

    MpiProgram(MpiCommandLine command) throws IOException {
        this.builder = command.builder().inheritIO().redirectInput(new File("/dev/null"));
    }

    /** Returns mpirun's exit code. */
    int run() throws IOException {
        Thread hook = new Thread(this::end, "weft-abandon");
        if (!ShutdownHooks.add(hook)) {
            throw RankProcesses.toldToEnd();
        }
        start();
        try {
            return mpirun.waitFor();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new RunFailedException("interrupted");
        } finally {
            end();
            ShutdownHooks.remove(hook);
        }
    }

    private synchronized void start() throws IOException {
        if (ending) {
            throw RankProcesses.toldToEnd();
        }
        mpirun = builder.start();
    }

    private synchronized void end() {
        ending = true;
        if (mpirun == null || !mpirun.isAlive()) {
            return;
        }
        boolean told = TerminationSignal.received().filter("SIGTERM"::equals).isEmpty();
        if (told && hasEnded(BY_ITSELF_MS)) {
            return;
        }
        mpirun.destroy();
        if (!hasEnded(TERM_MS)) {
            mpirun.descendants().forEach(ProcessHandle::destroyForcibly);
            mpirun.destroyForcibly();
        }
    }

    private boolean hasEnded(long withinMs) {
        mpirun.onExit().completeOnTimeout(mpirun, withinMs, TimeUnit.MILLISECONDS).join();
        return !mpirun.isAlive();
    }
}
