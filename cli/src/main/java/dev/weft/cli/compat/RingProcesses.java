package dev.weft.cli.compat;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.Progress;
import dev.weft.cli.launch.ProgressFile;
import dev.weft.cli.launch.RankProcesses;
import dev.weft.fabric.memory.ShmJob;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * Runs every rank of {@code weft ring} in a JVM of its own, started like this one, which judges and
 * prints for itself.
 */
record RingProcesses(RingRun run, int ranks, Duration deadline, Progress progress) {

    /** Prints every rank's line, in rank order; returns those of ranks that did not pass. */
    List<String> run(Console console) throws IOException {
        ShmJob job = ShmJob.create();
        try (RankProcesses processes = new RankProcesses(job, deadline)) {
            for (int rank = 0; rank < ranks; rank++) {
                processes.start(process(job), ranks);
            }
            int failed = processes.await(() -> ProgressFile.show(job.folder(), progress));
            progress.end();
            List<String> failures = new ArrayList<>();
            for (int rank = 0; rank < ranks; rank++) {
                List<String> printed = processes.output(rank);
                if (printed.isEmpty()) {
                    throw processes.failure(Math.max(failed, 0));
                }
                printed.forEach(console::print);
                printed.stream().filter(line -> line.endsWith("FAIL")).forEach(failures::add);
            }
            if (failed >= 0 && failures.isEmpty()) {
                throw processes.failure(failed);
            }
            return failures;
        } finally {
            progress.end();
        }
    }

    private ProcessBuilder process(ShmJob job) {
        List<String> command = new ArrayList<>(List.of("ring", "--launcher", "joined"));
        command.addAll(run.options());
        ProcessBuilder builder = RankProcesses.command(command);
        ProgressFile.askFor(builder, job);
        return builder;
    }
}
