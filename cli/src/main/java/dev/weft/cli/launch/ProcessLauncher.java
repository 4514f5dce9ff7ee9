package dev.weft.cli.launch;

import dev.weft.cli.console.ExitCode;
import dev.weft.cli.console.Progress;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.message.RankFile;
import dev.weft.fabric.memory.ShmJob;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.stream.IntStream;

/**
 * Runs every rank in its own JVM, started like this one, and collects the reports. However it ends,
 * no process and no file in shared memory is left.
 *
 * @param command the command of a rank's process: a subcommand and its arguments
 * @param report where a rank writes its report
 * @param live null if there is no listener
 */
public record ProcessLauncher<R extends Record>(
        List<String> command,
        int ranks,
        Duration deadline,
        RankFile<R> report,
        Live<R> live,
        Progress progress) {

    /** What ranks report while they run, and the listener. */
    public record Live<R extends Record>(RankFile<R> file, BiConsumer<Integer, R> listener) {}

    /** The reports, in rank order. */
    public List<R> run() throws IOException {
        ShmJob job = ShmJob.create();
        try (RankProcesses processes = new RankProcesses(job, deadline)) {
            for (int rank = 0; rank < ranks; rank++) {
                processes.start(process(job, rank), ranks);
            }
            int failed =
                    processes.await(
                            () -> {
                                ProgressFile.show(job.folder(), progress);
                                showRounds(job.folder());
                            });
            // Only one rank may have noticed it; the others then say that it has failed.
            if (IntStream.range(0, ranks).anyMatch(r -> processes.exitCode(r) == ExitCode.USAGE)) {
                throw new UsageException("%s", processes.failure(failed).getMessage());
            }
            if (failed >= 0) {
                throw processes.failure(failed);
            }
            return reports(job);
        } finally {
            progress.end();
        }
    }

    private ProcessBuilder process(ShmJob job, int rank) {
        ProcessBuilder builder = RankProcesses.command(command);
        report.askFor(builder, job.folder(), rank);
        ProgressFile.askFor(builder, job);
        if (live != null) {
            live.file().askFor(builder, job.folder(), rank);
        }
        return builder.redirectOutput(ProcessBuilder.Redirect.DISCARD);
    }

    /** Passes on what the ranks have reported since the last time. */
    private void showRounds(Path folder) {
        for (int rank = 0; live != null && rank < ranks; rank++) {
            int one = rank;
            live.file().take(folder, rank).ifPresent(soFar -> live.listener().accept(one, soFar));
        }
    }

    private List<R> reports(ShmJob job) throws IOException {
        List<R> reports = new ArrayList<>();
        for (int rank = 0; rank < ranks; rank++) {
            reports.add(report.read(job.folder(), rank));
        }
        return reports;
    }
}
