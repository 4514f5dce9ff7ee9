package dev.weft.cli;

import dev.weft.fabric.ShmJob;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * Runs every rank of {@code weft ring} in a JVM of its own, started like this one, which judges and
 * prints for itself.
 */
final class RingProcesses {

    private static final String ERROR_PREFIX = "weft: ";

    private final RingRun run;
    private final int ranks;
    private final Duration deadline;
    private final Progress progress;

    RingProcesses(RingRun run, int ranks, Duration deadline, Progress progress) {
        this.run = run;
        this.ranks = ranks;
        this.deadline = deadline;
        this.progress = progress;
    }

    /** Prints every rank's line, in rank order; returns those of ranks that did not pass. */
    List<String> run(Console console) throws IOException {
        ShmJob job = ShmJob.create();
        try (RankProcesses processes = new RankProcesses(job, deadline)) {
            for (int rank = 0; rank < ranks; rank++) {
                processes.start(process(job, rank), ranks);
            }
            int failed = processes.await(() -> ProgressFile.show(progressFile(job), progress));
            progress.end();
            List<String> failures = new ArrayList<>();
            for (int rank = 0; rank < ranks; rank++) {
                List<String> printed = Files.readAllLines(outputFile(job, rank));
                if (printed.isEmpty()) {
                    throw processes.failure(describeFailure(job, Math.max(failed, 0)));
                }
                printed.forEach(console::print);
                printed.stream().filter(line -> line.endsWith("FAIL")).forEach(failures::add);
            }
            if (failed >= 0 && failures.isEmpty()) {
                throw processes.failure(describeFailure(job, failed));
            }
            return failures;
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
        command.add("-Dweft.terminal=false");
        command.addAll(List.of("-cp", System.getProperty("java.class.path")));
        command.addAll(List.of(Main.class.getName(), "ring", "--launcher", "joined"));
        command.addAll(run.options());
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().put(ProgressFile.VARIABLE, progressFile(job).toString());
        return builder.redirectOutput(outputFile(job, rank).toFile())
                .redirectError(errorFile(job, rank).toFile());
    }

    private String describeFailure(ShmJob job, int failed) throws IOException {
        for (int rank = 0; rank < ranks; rank++) {
            for (String line : Files.readAllLines(errorFile(job, rank))) {
                if (line.startsWith(ERROR_PREFIX)) {
                    return "rank " + failed + " failed; " + line.substring(ERROR_PREFIX.length());
                }
            }
        }
        return "rank " + failed + " failed without a message";
    }

    private static Path outputFile(ShmJob job, int rank) {
        return job.folder().resolve("output-" + rank);
    }

    private static Path progressFile(ShmJob job) {
        return job.folder().resolve("progress");
    }

    private static Path errorFile(ShmJob job, int rank) {
        return job.folder().resolve("errors-" + rank);
    }
}
