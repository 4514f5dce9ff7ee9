package dev.weft.bench.peers;

import dev.weft.cli.Main;
import dev.weft.report.RecordReader;
import dev.weft.report.RunRecord;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/**
 * A program that the bench runs to its end, with a limit on its time. However that ends, nothing
 * that the program has started stays behind ({@link Children}). Immutable; any thread may call it.
 *
 * @param folder where it runs, and where its error output is kept meanwhile
 */
public record ChildCommand(List<String> command, Path folder) {

    public ChildCommand {
        command = List.copyOf(command);
    }

    /** Weft's own command line in a JVM that is started as this one was. */
    public static ChildCommand weft(List<String> arguments, Path folder) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
        // The last one counts: whatever this process talks to, the child draws no progress.
        command.add("-Dweft.terminal=false");
        command.add("-XX:-AutoCreateSharedArchive");
        command.add("-cp");
        command.add(System.getProperty("java.class.path"));
        command.add(Main.class.getName());
        command.addAll(arguments);
        return new ChildCommand(command, folder);
    }

    /**
     * The record of a {@code weft run}, which verifies its product; one that fails ends the bench.
     *
     * @param folder where inputs and the record go; the next run writes over them, so that two
     *     problems are never on the disk at once
     * @param options separated by blanks
     * @param more options whose values may have blanks
     */
    public static RunRecord run(Path folder, Duration limit, String options, String... more)
            throws IOException, InterruptedException {
        Path record = folder.resolve("record.json");
        List<String> arguments = new ArrayList<>(List.of("run", "--quiet"));
        arguments.addAll(List.of(options.split(" ")));
        arguments.addAll(List.of("--json", record.toString()));
        arguments.addAll(List.of("--data-dir", folder.resolve("data").toString()));
        arguments.addAll(List.of(more));
        try {
            weft(arguments, folder).run(limit);
            return RecordReader.read(record).run();
        } finally {
            Files.deleteIfExists(record);
        }
    }

    /**
     * Runs it.
     *
     * @return nanoseconds from its start to its exit
     * @throws IOException if it fails or takes longer than {@code limit}
     */
    public long run(Duration limit) throws IOException, InterruptedException {
        return run(limit, ProcessBuilder.Redirect.DISCARD);
    }

    /**
     * Runs it.
     *
     * @return the lines of its standard output
     * @throws IOException if it fails or takes longer than {@code limit}
     */
    public List<String> lines(Duration limit) throws IOException, InterruptedException {
        Path output = Files.createTempFile(folder, "output-", ".txt");
        try {
            run(limit, ProcessBuilder.Redirect.to(output.toFile()));
            return Files.readAllLines(output);
        } finally {
            Files.deleteIfExists(output);
        }
    }

    private long run(Duration limit, ProcessBuilder.Redirect output)
            throws IOException, InterruptedException {
        Path errors = Files.createTempFile(folder, "errors-", ".txt");
        ProcessBuilder builder =
                new ProcessBuilder(command)
                        .directory(folder.toFile())
                        .redirectOutput(output)
                        .redirectError(errors.toFile());
        long startNs = System.nanoTime();
        Process process = Children.start(builder);
        try {
            if (!process.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS)) {
                throw new IOException(
                        describe() + ": not done after " + limit.toSeconds() + " s, ended");
            }
            long tookNs = System.nanoTime() - startNs;
            if (process.exitValue() != 0) {
                throw new IOException(describe() + ": " + reason(errors, process.exitValue()));
            }
            return tookNs;
        } finally {
            Children.end(process);
            Files.deleteIfExists(errors);
        }
    }

    private String describe() {
        // The last one: a launcher has what it launches behind its own words.
        int main = command.lastIndexOf(Main.class.getName());
        return main < 0
                ? String.join(" ", command)
                : "weft " + String.join(" ", command.subList(main + 1, command.size()));
    }

    /** The child's own one-line message where it left one, or those of its ranks. */
    private static String reason(Path errors, int exitCode) throws IOException {
        String prefix = "weft: ";
        String messages =
                Files.readAllLines(errors).stream()
                        .filter(line -> line.startsWith(prefix))
                        .map(line -> line.substring(prefix.length()))
                        .distinct()
                        .collect(Collectors.joining("; "));
        return messages.isEmpty() ? "failed with exit code " + exitCode : messages;
    }
}
