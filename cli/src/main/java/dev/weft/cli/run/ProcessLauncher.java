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
 *
 * @param arguments the options of run, which every rank parses again
 * @param listener null where nobody listens
 */
record ProcessLauncher(
        int ranks,
        ExecutionSpec execution,
        List<String> arguments,
        Progress progress,
        RoundListener listener) {

    List<RankReport> run() throws IOException {
        ShmJob job = ShmJob.create();
        try (RankProcesses processes = new RankProcesses(job, execution.deadline())) {
            for (int rank = 0; rank < ranks; rank++) {
                processes.start(process(job, rank), ranks);
            }
            int failed =
                    processes.await(
                            () -> {
                                ProgressFile.show(job.folder(), progress);
                                showRounds(job.folder());
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
        RankCommand.REPORT.askFor(builder, job.folder(), rank);
        ProgressFile.askFor(builder, job);
        if (listener != null) {
            RankCommand.LIVE.askFor(builder, job.folder(), rank);
        }
        return builder.redirectOutput(ProcessBuilder.Redirect.DISCARD);
    }

    /** Passes on what the ranks have told of their rounds since the last time. */
    private void showRounds(Path folder) {
        for (int rank = 0; listener != null && rank < ranks; rank++) {
            int one = rank;
            RankCommand.LIVE.take(folder, rank).ifPresent(soFar -> listener.round(one, soFar));
        }
    }

    private List<RankReport> reports(ShmJob job) throws IOException {
        List<RankReport> reports = new ArrayList<>();
        for (int rank = 0; rank < ranks; rank++) {
            reports.add(RankCommand.REPORT.read(job.folder(), rank));
        }
        return reports;
    }
}
