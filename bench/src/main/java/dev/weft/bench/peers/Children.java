package dev.weft.bench.peers;

import dev.weft.process.ShutdownHooks;
import java.io.IOException;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/**
 * The processes that the bench has started. However the JVM ends, short of being killed, none of
 * them stays behind. Any thread may call it.
 */
public final class Children {

    /** Asked to end, mpirun also ends its ranks and removes their shared memory. */
    private static final long GRACE_MS = 3_000;

    private static final Set<Process> RUNNING = ConcurrentHashMap.newKeySet();

    private static boolean ending;

    static {
        ending = !ShutdownHooks.add(new Thread(Children::endAll, "weft-bench-end"));
    }

    private Children() {}

    public static synchronized Process start(ProcessBuilder builder) throws IOException {
        if (ending) {
            throw new IOException("told to end");
        }
        Process process = builder.start();
        RUNNING.add(process);
        return process;
    }

    /** Ends all that run; no other can be started any more. For the end of the JVM. */
    public static synchronized void endAll() {
        ending = true;
        RUNNING.forEach(Children::end);
    }

    /** Returns when the process and all that it has started are gone; first asks, then kills. */
    public static void end(Process process) {
        List<ProcessHandle> below = process.descendants().toList();
        process.destroy();
        boolean interrupted = false;
        try {
            interrupted = !gone(process);
        } finally {
            below.forEach(ProcessHandle::destroyForcibly);
            process.destroyForcibly();
            RUNNING.remove(process);
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** False where this thread was interrupted while it waited. */
    private static boolean gone(Process process) {
        try {
            process.waitFor(GRACE_MS, TimeUnit.MILLISECONDS);
            return true;
        } catch (InterruptedException e) {
            // The caller kills what is left and passes the interrupt on.
            return false;
        }
    }
}
