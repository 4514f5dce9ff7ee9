package dev.weft.cli;

import dev.weft.fabric.ShmJob;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;

/**
 * The processes of one start, a rank each. However it ends, also by a signal to this process, no
 * process and no file in shared memory stays behind. Used by one thread.
 */
final class RankProcesses implements AutoCloseable {

    /** Exit codes above this one tell of a signal. */
    static final int SIGNAL_EXIT = 128;

    /** Beyond the deadline: a rank that has noticed a failure still has to unwind and exit. */
    private static final long UNWIND_NS = 5_000_000_000L;

    /** How long killed ranks may take to be gone; after that their files are removed anyway. */
    private static final long GONE_MS = 2_000;

    private final ShmJob job;
    private final Duration deadline;
    private final List<Process> processes = new CopyOnWriteArrayList<>();
    private final Thread hook = new Thread(this::abandon, "weft-abandon");

    /** By rank, of those that had to be killed: what is said of them. */
    private final Map<Integer, String> hung = new TreeMap<>();

    private boolean abandoned;

    /** Takes over the job and closes it. */
    RankProcesses(ShmJob job, Duration deadline) {
        this.job = job;
        this.deadline = deadline;
        Runtime.getRuntime().addShutdownHook(hook);
    }

    /** Starts the next rank of {@code ranks} with what it needs to join the others. */
    synchronized void start(ProcessBuilder builder, int ranks) throws IOException {
        if (abandoned) {
            throw new RunFailedException("told to end");
        }
        builder.environment().putAll(job.environment(processes.size(), ranks, deadline));
        builder.environment().put(RankEnd.FILE, endFile(processes.size()).toString());
        processes.add(builder.start());
    }

    private Path endFile(int rank) {
        return job.folder().resolve("end-" + rank);
    }

    /** The command is told to end: so are its ranks. */
    private synchronized void abandon() {
        abandoned = true;
        killAll();
        try {
            job.close();
        } catch (UncheckedIOException e) {
            System.err.println("weft: " + e.getMessage());
        }
    }

    /** Returns when they are gone: one that is still dying could make a file in the folder. */
    private void killAll() {
        processes.forEach(RankProcesses::kill);
        CompletableFuture<?>[] gone =
                processes.stream().map(Process::onExit).toArray(CompletableFuture<?>[]::new);
        CompletableFuture.allOf(gone)
                .completeOnTimeout(null, GONE_MS, TimeUnit.MILLISECONDS)
                .join();
    }

    /** Also what the process has started itself, as a shell does. */
    private static void kill(Process process) {
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
    }

    /**
     * Returns when all have ended: by themselves or, some time after one of them has failed, by
     * force.
     *
     * @param look called many times a second
     * @return the rank that failed first, a killed one before others; -1 where none failed
     */
    int await(Runnable look) {
        int failed = -1;
        long giveUpNs = 0;
        while (processes.stream().anyMatch(Process::isAlive)) {
            pause();
            look.run();
            int culprit = culprit();
            if (failed < 0 && culprit >= 0) {
                failed = culprit;
                giveUpNs = System.nanoTime() + deadline.toNanos() + UNWIND_NS;
            }
            if (failed >= 0 && (System.nanoTime() > giveUpNs || onlyStoppedOnesAreLeft())) {
                noteThoseThatDoNotEnd();
                processes.forEach(RankProcesses::kill);
            }
        }
        return failed < 0 ? culprit() : failed;
    }

    private boolean onlyStoppedOnesAreLeft() {
        return processes.stream()
                .filter(Process::isAlive)
                .allMatch(process -> isStopped(process.pid()));
    }

    private void noteThoseThatDoNotEnd() {
        for (int rank = 0; rank < processes.size(); rank++) {
            if (processes.get(rank).isAlive()) {
                boolean stopped = isStopped(processes.get(rank).pid());
                hung.putIfAbsent(rank, stopped ? "is stopped" : "did not end by itself");
            }
        }
    }

    /** Whether a signal has stopped the process, where the system tells. */
    private static boolean isStopped(long pid) {
        try {
            String stat = Files.readString(Path.of("/proc/" + pid + "/stat"));
            return stat.substring(stat.lastIndexOf(')') + 1).startsWith(" T");
        } catch (IOException e) {
            // Gone meanwhile, or another system.
            return false;
        }
    }

    /** What the ranks that had something to say have left, once all have ended. */
    private List<RankEnd> ends() throws IOException {
        List<RankEnd> ends = new ArrayList<>();
        for (int rank = 0; rank < processes.size(); rank++) {
            int known = rank;
            RankEnd.read(endFile(rank)).ifPresent(end -> ends.add(end.ofRank(known)));
        }
        return ends;
    }

    /**
     * The error that names the culprit, with a row for each rank where they have said how things
     * stood.
     *
     * @param otherwise what is said if nobody can tell
     */
    RunFailedException failure(String otherwise) throws IOException {
        List<RankEnd> ends = ends();
        boolean told = ends.stream().anyMatch(end -> end.situation().isPresent());
        return new RunFailedException(
                new Culprit(ends, fates()).line().orElse(otherwise),
                told ? EndTable.lines(processes.size(), ends, fates()) : List.of());
    }

    /** What is known of the ranks that ended otherwise. */
    private Map<Integer, Culprit.Fate> fates() {
        Map<Integer, Culprit.Fate> fates = new TreeMap<>();
        for (int rank = 0; rank < processes.size(); rank++) {
            int code = exitCode(rank);
            if (hung.containsKey(rank)) {
                fates.put(rank, new Culprit.Fate(false, hung.get(rank)));
            } else if (code > SIGNAL_EXIT) {
                int signal = code - SIGNAL_EXIT;
                fates.put(rank, new Culprit.Fate(true, "was ended by signal " + signal));
            } else if (code != 0 && !Files.exists(endFile(rank))) {
                fates.put(rank, new Culprit.Fate(true, "failed with exit code " + code));
            }
        }
        return fates;
    }

    int exitCode(int rank) {
        return processes.get(rank).exitValue();
    }

    private static void pause() {
        try {
            TimeUnit.MILLISECONDS.sleep(20);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new RunFailedException("interrupted");
        }
    }

    /** A rank that a signal ended, else one that failed by itself, else -1. */
    private int culprit() {
        int culprit = -1;
        for (int rank = 0; rank < processes.size(); rank++) {
            Process process = processes.get(rank);
            if (!process.isAlive() && process.exitValue() != 0) {
                if (process.exitValue() > SIGNAL_EXIT) {
                    return rank;
                }
                culprit = culprit < 0 ? rank : culprit;
            }
        }
        return culprit;
    }

    @Override
    public void close() {
        try (job) {
            killAll();
            if (!Thread.currentThread().isInterrupted()) {
                removeHook();
            }
        }
    }

    private void removeHook() {
        try {
            Runtime.getRuntime().removeShutdownHook(hook);
        } catch (IllegalStateException e) {
            // The JVM is going down already, and the hook does its work.
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "shutting down", e);
        }
    }
}
