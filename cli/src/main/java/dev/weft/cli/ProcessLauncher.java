package dev.weft.cli;

import dev.weft.fabric.ShmJob;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Runs every rank in a JVM of its own, started like this one, and collects the reports. However it
 * ends, no process and no file in shared memory stays behind.
 */
final class ProcessLauncher {

    private final int ranks;
    private final ExecutionSpec execution;
    private final List<String> arguments;
    private final Progress progress;

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
        ShmJob job = ShmJob.create();
        try (RankProcesses processes = new RankProcesses(job, execution.deadline())) {
            for (int rank = 0; rank < ranks; rank++) {
                processes.start(process(job, rank), ranks);
            }
            int failed =
                    processes.await(
                            () -> {
                                ProgressFile.show(progressFile(job), progress);
                                LiveFiles.show(job.folder(), ranks, progress);
                            });
            if (failed >= 0) {
                throw processes.failure(describeFailure(job, failed, processes.exitCode(failed)));
            }
            return reports(job);
        } finally {
            progress.end();
        }
    }

    private ProcessBuilder process(ShmJob job, int rank) {
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
        builder.environment().put(RankCommand.REPORT, reportFile(job, rank).toString());
        builder.environment().put(ProgressFile.VARIABLE, progressFile(job).toString());
        if (progress.wantsRounds()) {
            builder.environment().put(LiveFiles.VARIABLE, job.folder().toString());
        }
        builder.redirectOutput(ProcessBuilder.Redirect.DISCARD);
        builder.redirectError(errorFile(job, rank).toFile());
        return builder;
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

    private String describeFailure(ShmJob job, int failed, int code) throws IOException {
        StringBuilder text = new StringBuilder("rank " + failed);
        if (code > RankProcesses.SIGNAL_EXIT) {
            text.append(" was ended by signal ").append(code - RankProcesses.SIGNAL_EXIT);
        } else {
            text.append(" failed");
        }
        for (int rank = 0; rank < ranks; rank++) {
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
