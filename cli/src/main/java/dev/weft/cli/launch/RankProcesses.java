package dev.weft.cli.launch;

import dev.weft.cli.console.RunFailedException;
import dev.weft.cli.diagnosis.FailureDiagnosis;
import dev.weft.cli.diagnosis.FailureDiagnosis.ProcessEnd;
import dev.weft.cli.diagnosis.FailureTable;
import dev.weft.cli.diagnosis.RankFailure;
import dev.weft.fabric.memory.Renewals;
import dev.weft.fabric.memory.ShmJob;
import dev.weft.files.TemporaryFiles;
import dev.weft.process.ShutdownHooks;
import dev.weft.process.Uninterruptibly;
import dev.weft.process.WaitTime;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
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
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * The processes of one start, one per rank. However it ends, even by a signal to this process, no
 * process and no file in shared memory is left. Used by one thread.
 */
public final class RankProcesses implements AutoCloseable {

    /** The class that a rank's process starts with, which this package cannot see. */
    private static final String MAIN_CLASS = "dev.weft.cli.Main";

    /** Exit codes above this one mean a signal. */
    static final int SIGNAL_EXIT = 128;

    private static final long LOOK_MS = 20;

    /** How long what ranks have printed may take to be read once they have ended. */
    private static final long MOST_READ_MS = 2_000;

    /** A rank's process and what is known about it; only the process is used by several threads. */
    private static final class Rank {
        final ProcessBuilder builder;
        final Process process;
        final PipeText output;
        final PipeText errors;

        /** Whether the other ranks have been told that it ended. */
        boolean announced;

        /** What to say about it if it had to be killed, else null. */
        String hung;

        Rank(ProcessBuilder builder, Consumer<byte[]> output, Consumer<byte[]> errors)
                throws IOException {
            this.builder = builder;
            this.process = builder.start();
            this.output = new PipeText(process.getInputStream(), output);
            this.errors = new PipeText(process.getErrorStream(), errors);
        }

        boolean isAlive() {
            return process.isAlive();
        }

        boolean hasFailed() {
            return !isAlive() && process.exitValue() != 0;
        }

        boolean isStopped() {
            return ProcessStates.isStopped(process.pid());
        }

        void read() {
            output.read();
            errors.read();
        }
    }

    private final ShmJob job;
    private final Duration deadline;
    private final List<Rank> ranks = new CopyOnWriteArrayList<>();
    private final Thread hook = new Thread(this::abandon, "weft-abandon");
    private volatile boolean passesOnSigterm;

    /** This process was told to end: no rank is started any more. Set under the lock of this. */
    private volatile boolean ending;

    /** Completed once what ranks have printed is read. */
    private final CompletableFuture<Void> closing = new CompletableFuture<>();

    /** Takes ownership of the job and closes it. */
    public RankProcesses(ShmJob job, Duration deadline) {
        this.job = job;
        this.deadline = deadline;
        if (!ShutdownHooks.add(hook)) {
            job.close();
            throw toldToEnd();
        }
    }

    /** Not printed if a signal is known, which is. */
    static RunFailedException toldToEnd() {
        return new RunFailedException("told to end");
    }

    /** The Java that runs this process. */
    static String java() {
        return Path.of(System.getProperty("java.home"), "bin", "java").toString();
    }

    /** This command as a rank: the same Java, the same classes, other arguments. */
    public static ProcessBuilder command(List<String> arguments) {
        List<String> command = new ArrayList<>();
        command.add(java());
        command.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
        // The command writes the class archive; its ranks only read it.
        command.add("-XX:-AutoCreateSharedArchive");
        command.add("-Dweft.terminal=false");
        command.addAll(List.of("-cp", System.getProperty("java.class.path")));
        command.add(MAIN_CLASS);
        command.addAll(arguments);
        return new ProcessBuilder(command);
    }

    /** Starts the next rank of {@code count} with what it needs to join the others. */
    public void start(ProcessBuilder builder, int count) throws IOException {
        start(builder, count, some -> {}, some -> {});
    }

    /**
     * @param output gets what the rank prints, if that goes to this process, as it arrives
     */
    synchronized void start(
            ProcessBuilder builder, int count, Consumer<byte[]> output, Consumer<byte[]> errors)
            throws IOException {
        if (ending) {
            throw toldToEnd();
        }
        int rank = ranks.size();
        builder.environment().putAll(job.environment(rank, count, deadline));
        RankFailure.FILE.askFor(builder, job.folder(), rank);
        ranks.add(new Rank(builder, output, errors));
    }

    /**
     * Starts a rank again whose process has ended.
     *
     * @return false if this process was told to end, and starts none
     */
    synchronized boolean restart(int rank) throws IOException {
        if (ending) {
            return false;
        }
        Rank ended = ranks.get(rank);
        ended.read();
        // Ranks may be meeting it: it may have ended only since the last look at all ends.
        tellOfEnd(rank);
        // What it reported is of no use any more.
        Files.deleteIfExists(RankFailure.FILE.path(job.folder(), rank));
        ranks.set(rank, new Rank(ended.builder, ended.output.copy(), ended.errors.copy()));
        return true;
    }

    /** How many have been started. */
    int count() {
        return ranks.size();
    }

    /** From now on, ranks get SIGTERM when this process is told to end, and time to end well. */
    void passOnSigterm() {
        passesOnSigterm = true;
    }

    /** The command was told to end: it ends its ranks. */
    void abandon() {
        List<ProcessHandle> told = tellToEnd();
        if (passesOnSigterm) {
            ProcessStates.awaitGone(told, deadline.plus(Renewals.GRACE));
        }
        killAll(told);
        // Its last part may still be in the pipes.
        closing.completeOnTimeout(null, MOST_READ_MS, TimeUnit.MILLISECONDS).join();
        try {
            job.close();
        } catch (UncheckedIOException e) {
            System.err.println("weft: " + e.getMessage());
        }
    }

    /**
     * Returns the processes that have to end. They are looked for only now: what a shell has
     * started is found no more once the shell is gone.
     */
    private synchronized List<ProcessHandle> tellToEnd() {
        ending = true;
        List<ProcessHandle> told = ProcessStates.withStarted(handles());
        if (passesOnSigterm) {
            told.forEach(ProcessHandle::destroy);
        }
        return told;
    }

    /** Whether this process was told to end. */
    boolean isEnding() {
        return ending;
    }

    /** Returns when they are gone: one that is still dying could create a file in the folder. */
    private static void killAll(List<ProcessHandle> processes) {
        List<ProcessHandle> all =
                ProcessStates.withStarted(processes.stream().filter(ProcessHandle::isAlive));
        all.forEach(ProcessHandle::destroyForcibly);
        ProcessStates.awaitGone(all);
        TemporaryFiles.removeLeft();
    }

    private Stream<ProcessHandle> handles() {
        return ranks.stream().map(rank -> rank.process.toHandle());
    }

    private static void kill(Process process) {
        ProcessStates.withStarted(Stream.of(process.toHandle()))
                .forEach(ProcessHandle::destroyForcibly);
    }

    /**
     * Returns when all have ended: on their own, or by force some time after one of them has failed
     * or when all that are left have been stopped for the length of the deadline.
     *
     * @param look called many times a second
     * @return the rank that failed first, a killed one before others; -1 if none failed
     */
    public int await(Runnable look) {
        return awaitFinal(
                () -> {
                    look.run();
                    return true;
                });
    }

    /**
     * @param look called many times a second; returns whether ranks that have failed are not
     *     started again
     */
    int awaitFinal(BooleanSupplier look) {
        boolean isFinal = false;
        int failed = -1;
        long unwindNs = 0;
        long stoppedNs = 0;
        long lookedNs = System.nanoTime();
        long deadlineNs = WaitTime.nanoseconds(deadline);
        long mostUnwindNs = WaitTime.nanoseconds(deadline.plus(Renewals.GRACE));
        while (ranks.stream().anyMatch(Rank::isAlive) || !isFinal && firstFailed() >= 0) {
            RunFailedException.sleep(LOOK_MS);
            read();
            tellOfEnds();
            isFinal = look.getAsBoolean();
            long now = System.nanoTime();
            long stepNs = WaitTime.counted(lookedNs, now);
            lookedNs = now;
            failed = isFinal && failed < 0 ? firstFailed() : failed;
            unwindNs += failed < 0 ? 0 : stepNs;
            boolean stopped = onlyStoppedOnesAreLeft();
            stoppedNs = stopped ? stoppedNs + stepNs : 0;
            if (failed >= 0 && (stopped || unwindNs > mostUnwindNs) || stoppedNs > deadlineNs) {
                noteThoseThatDoNotEnd();
                ranks.forEach(rank -> kill(rank.process));
            }
        }
        read();
        return failed < 0 ? firstFailed() : failed;
    }

    private void read() {
        ranks.forEach(Rank::read);
    }

    /** Ranks that still wait for it to arrive need not wait any longer. */
    private void tellOfEnds() {
        for (int rank = 0; rank < ranks.size(); rank++) {
            tellOfEnd(rank);
        }
    }

    private void tellOfEnd(int rank) {
        Rank one = ranks.get(rank);
        if (!one.announced && !one.isAlive()) {
            one.announced = true;
            job.ended(rank);
        }
    }

    private boolean onlyStoppedOnesAreLeft() {
        return ranks.stream().filter(Rank::isAlive).allMatch(Rank::isStopped);
    }

    private void noteThoseThatDoNotEnd() {
        for (Rank rank : ranks) {
            if (rank.isAlive() && rank.hung == null) {
                rank.hung = rank.isStopped() ? "is stopped" : "did not end by itself";
            }
        }
    }

    boolean isAlive(int rank) {
        return ranks.get(rank).isAlive();
    }

    boolean hasFailed(int rank) {
        return ranks.get(rank).hasFailed();
    }

    boolean isStopped(int rank) {
        return ranks.get(rank).isStopped();
    }

    /**
     * @param hung what to say about it
     */
    void kill(int rank, String hung) {
        ranks.get(rank).hung = hung;
        kill(ranks.get(rank).process);
    }

    /** The failures that ranks have reported, once all have ended. */
    private List<RankFailure> ends() {
        List<RankFailure> ends = new ArrayList<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            int known = rank;
            RankFailure.FILE
                    .readable(job.folder(), rank)
                    .ifPresent(end -> ends.add(end.ofRank(known)));
        }
        return ends;
    }

    /**
     * The error that names the rank that failed first, with a row for each rank if they have
     * reported their state.
     *
     * @param failed the rank that is named if the cause is unknown
     */
    public RunFailedException failure(int failed) {
        List<RankFailure> ends = ends();
        boolean reported = ends.stream().anyMatch(end -> end.report().isPresent());
        return new RunFailedException(
                new FailureDiagnosis(ends, processEnds())
                        .line()
                        .orElse("rank " + failed + " " + end(failed)),
                reported ? FailureTable.lines(ranks.size(), ends, processEnds()) : List.of());
    }

    /** What is known about the ranks that ended otherwise. */
    private Map<Integer, ProcessEnd> processEnds() {
        Map<Integer, ProcessEnd> processEnds = new TreeMap<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            Rank one = ranks.get(rank);
            if (one.hung != null) {
                processEnds.put(rank, new ProcessEnd(false, one.hung));
            } else if (exitCode(rank) > SIGNAL_EXIT
                    || one.hasFailed()
                            && !Files.exists(RankFailure.FILE.path(job.folder(), rank))) {
                processEnds.put(rank, new ProcessEnd(true, end(rank)));
            }
        }
        return processEnds;
    }

    /** How the rank's process ended, after {@code rank 3}. */
    String end(int rank) {
        if (ranks.get(rank).hung != null) {
            return ranks.get(rank).hung;
        }
        int code = exitCode(rank);
        if (code > SIGNAL_EXIT) {
            return "was ended by signal " + (code - SIGNAL_EXIT);
        }
        String reason = ranks.get(rank).errors.lastError();
        return reason.isEmpty() ? "failed with exit code " + code : "failed: " + reason;
    }

    int exitCode(int rank) {
        return ranks.get(rank).process.exitValue();
    }

    /** A rank that a signal ended, else one that failed on its own, else -1. */
    private int firstFailed() {
        int first = -1;
        for (int rank = 0; rank < ranks.size(); rank++) {
            if (ranks.get(rank).hasFailed()) {
                if (exitCode(rank) > SIGNAL_EXIT) {
                    return rank;
                }
                first = first < 0 ? rank : first;
            }
        }
        return first;
    }

    @Override
    public void close() {
        closing.complete(null);
        if (ending) {
            // Processes that ranks have started may still be ending well.
            Uninterruptibly.join(hook);
            return;
        }
        try (job) {
            killAll(handles().toList());
            if (!Thread.currentThread().isInterrupted()) {
                ShutdownHooks.remove(hook);
            }
        }
    }
}
