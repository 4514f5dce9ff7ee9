package dev.weft.cli;

import dev.weft.fabric.ShmJob;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Runs every rank in a JVM of its own, started like this one, and collects the reports. However it
 * ends, no process and no file in shared memory stays behind.
 */
final class ProcessLauncher {

    /** Beyond the deadline: a rank that has noticed a failure still has to unwind and exit. */
    private static final long UNWIND_NS = 5_000_000_000L;

    private static final int SIGNAL_EXIT = 128;

    private final int ranks;
    private final ExecutionSpec execution;
    private final List<String> arguments;
    private final Progress progress;
    private final List<Process> processes = new ArrayList<>();

    /**
     * @param arguments the options of run, which every rank parses again
     */
    ProcessLauncher(int ranks, ExecutionSpec execution, List<String> arguments, Progress progress) {
        this.ranks = ranks;
        this.execution = execution;
        this.arguments = arguments;
        this.progress = progress;
    }

    List<RankReport> run() throws IOException {
        try (ShmJob job = ShmJob.create()) {
            Thread hook = new Thread(() -> abandon(job), "weft-abandon");
            Runtime.getRuntime().addShutdownHook(hook);
            try {
                for (int rank = 0; rank < ranks; rank++) {
                    processes.add(start(job, rank));
                }
                awaitAll(job);
                return reports(job);
            } finally {
                processes.forEach(Process::destroyForcibly);
                if (!Thread.currentThread().isInterrupted()) {
                    removeHook(hook);
                }
            }
        }
    }

    /** The command is told to end: so are its ranks. */
    private void abandon(ShmJob job) {
        processes.forEach(Process::destroyForcibly);
        job.close();
    }

    private static void removeHook(Thread hook) {
        try {
            Runtime.getRuntime().removeShutdownHook(hook);
        } catch (IllegalStateException e) {
            // The JVM is going down already, and the hook does its work.
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "shutting down", e);
        }
    }

    private Process start(ShmJob job, int rank) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
        // The command writes the class archive; its ranks only read it.
        command.add("-XX:-AutoCreateSharedArchive");
        command.add("-cp");
        command.add(System.getProperty("java.class.path"));
        command.add(Main.class.getName());
        command.add("rank");
        command.addAll(arguments);
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().putAll(job.environment(rank, ranks, execution.deadline()));
        builder.environment().put(RankCommand.REPORT, reportFile(job, rank).toString());
        builder.environment().put(ProgressFile.VARIABLE, progressFile(job).toString());
        builder.redirectOutput(ProcessBuilder.Redirect.DISCARD);
        builder.redirectError(errorFile(job, rank).toFile());
        return builder.start();
    }

    private static Path reportFile(ShmJob job, int rank) {
        return job.folder().resolve("report-" + rank);
    }

    private static Path errorFile(ShmJob job, int rank) {
        return job.folder().resolve("errors-" + rank);
    }

    private static Path progressFile(ShmJob job) {
        return job.folder().resolve("progress");
    }

    /** Returns when all have ended well; otherwise ends the rest and says who was the cause. */
    private void awaitAll(ShmJob job) throws IOException {
        int failed = -1;
        long giveUpNs = 0;
        while (processes.stream().anyMatch(Process::isAlive)) {
            pause();
            ProgressFile.show(progressFile(job), progress);
            int culprit = culprit();
            if (failed < 0 && culprit >= 0) {
                failed = culprit;
                giveUpNs = System.nanoTime() + execution.deadline().toNanos() + UNWIND_NS;
            }
            if (failed >= 0 && System.nanoTime() > giveUpNs) {
                processes.forEach(Process::destroyForcibly);
            }
        }
        progress.end();
        failed = failed < 0 ? culprit() : failed;
        if (failed >= 0) {
            throw new RunFailedException(describeFailure(job, failed));
        }
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

    private String describeFailure(ShmJob job, int failed) throws IOException {
        int code = processes.get(failed).exitValue();
        StringBuilder text = new StringBuilder("rank " + failed);
        if (code > SIGNAL_EXIT) {
            text.append(" was ended by signal ").append(code - SIGNAL_EXIT);
        } else {
            text.append(" failed");
        }
        for (int rank = 0; rank < processes.size(); rank++) {
            String line = lastError(job, rank);
            if (!line.isEmpty()) {
                return text.append("; ").append(line).toString();
            }
        }
        return text.append(" with exit code ").append(code).toString();
    }

    /** The rank's own one-line message, without the command's name in front. */
    private static String lastError(ShmJob job, int rank) throws IOException {
        String prefix = "weft: ";
        return Files.readAllLines(errorFile(job, rank)).stream()
                .filter(line -> line.startsWith(prefix))
                .map(line -> line.substring(prefix.length()))
                .reduce((first, second) -> second)
                .orElse("");
    }

    private List<RankReport> reports(ShmJob job) throws IOException {
        List<RankReport> reports = new ArrayList<>();
        for (int rank = 0; rank < ranks; rank++) {
            reports.add(RankReport.read(reportFile(job, rank)));
        }
        return reports;
    }
}
