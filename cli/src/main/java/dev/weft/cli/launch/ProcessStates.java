package dev.weft.cli.launch;

import dev.weft.process.WaitTime;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** What the system tells of processes, also of those that this one has not started. Thread-safe. */
final class ProcessStates {

    private static final long LOOK_MS = 20;

    /** How long killed processes may take to be gone. */
    private static final Duration GONE = Duration.ofSeconds(2);

    private ProcessStates() {}

    /** With all that they have started themselves, as shells do, and that still runs. */
    static List<ProcessHandle> withStarted(Stream<ProcessHandle> processes) {
        // Of one that has ended, another process may have the number by now.
        return processes
                .filter(ProcessHandle::isAlive)
                .flatMap(one -> Stream.concat(one.descendants(), Stream.of(one)))
                .distinct()
                .toList();
    }

    /** Returns when they are gone, or after some time if they cannot be killed. */
    static void awaitGone(List<ProcessHandle> processes) {
        awaitGone(processes, GONE);
    }

    /** Returns when they are gone, or after the given time. */
    static void awaitGone(List<ProcessHandle> processes, Duration most) {
        long untilNs = System.nanoTime() + WaitTime.nanoseconds(most);
        while (processes.stream().anyMatch(ProcessStates::runs)
                && System.nanoTime() - untilNs < 0) {
            // Not a sleep, which an interrupt would end.
            new CompletableFuture<Void>()
                    .completeOnTimeout(null, LOOK_MS, TimeUnit.MILLISECONDS)
                    .join();
        }
    }

    /**
     * Not if it has ended and only its parent, which may never do so, has to take note. A killed
     * process looks so as soon as its first thread has ended, but the others hold its locks.
     */
    static boolean runs(ProcessHandle process) {
        long pid = process.pid();
        return process.isAlive() && (!hasState('Z', pid) || hasThreads(pid));
    }

    /** Besides the first one. */
    private static boolean hasThreads(long pid) {
        try (Stream<Path> threads = Files.list(Path.of("/proc/" + pid + "/task"))) {
            return threads.count() > 1;
        } catch (IOException | UncheckedIOException e) {
            // Already gone.
            return false;
        }
    }

    /** Whether a signal has stopped the process, if the system reports that. */
    static boolean isStopped(long pid) {
        return hasState('T', pid);
    }

    /**
     * @param state as in the manual of Linux, proc_pid_stat(5)
     */
    private static boolean hasState(char state, long pid) {
        try {
            String stat = Files.readString(Path.of("/proc/" + pid + "/stat"));
            return stat.startsWith(" " + state, stat.lastIndexOf(')') + 1);
        } catch (IOException e) {
            // Already gone, or another system.
            return false;
        }
    }
}
