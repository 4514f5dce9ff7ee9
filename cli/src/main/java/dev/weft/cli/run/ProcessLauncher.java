package dev.weft.cli.run;

import dev.weft.cli.console.Progress;
import dev.weft.cli.launch.ProgressFile;
import dev.weft.cli.launch.RankProcesses;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.fabric.memory.ShmJob;
import java.io.IOException;
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
    private final RoundListener listener;

    /**
     * @param arguments the options of run, which every rank parses again
     * @param listener null where nobody listens
     */
    ProcessLauncher(
            int ranks,
            ExecutionSpec execution,
            List<String> arguments,
            Progress progress,
            RoundListener listener) {
        this.ranks = ranks;
        this.execution = execution;
        this.arguments = arguments;
        this.progress = progress;
        this.listener = listener;
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
                                if (listener != null) {
                                    LiveFiles.show(job.folder(), ranks, listener);
                                }
                            });
            if (failed >= 0) {
                throw processes.failure(failed);
            }
            return reports(job);
        } finally {
            progress.end();
        }
    }

    private ProcessBuilder process(ShmJob job, int rank) {
        List<String> command = new ArrayList<>(List.of("rank"));
        command.addAll(arguments);
        ProcessBuilder builder = RankProcesses.command(command);
        builder.environment().put(RankCommand.REPORT, reportFile(job, rank).toString());
        builder.environment().put(ProgressFile.VARIABLE, progressFile(job).toString());
        if (listener != null) {
            builder.environment().put(LiveFiles.VARIABLE, job.folder().toString());
        }
        return builder.redirectOutput(ProcessBuilder.Redirect.DISCARD);
    }

    private static Path reportFile(ShmJob job, int rank) {
        return job.folder().resolve("report-" + rank);
    }

    private static Path progressFile(ShmJob job) {
        return job.folder().resolve("progress");
    }

    private List<RankReport> reports(ShmJob job) throws IOException {
        List<RankReport> reports = new ArrayList<>();
        for (int rank = 0; rank < ranks; rank++) {
            reports.add(RankReport.read(reportFile(job, rank)));
        }
        return reports;
    }
}
