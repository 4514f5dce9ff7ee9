package dev.weft.bench.peers;

import dev.weft.cli.Main;
import dev.weft.report.RecordReader;
import dev.weft.report.RunRecord;
import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
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
 * @param folder where it runs, and where its output is kept meanwhile
 */
public record ChildCommand(List<String> command, Path folder) {

    private static final int LATE = -1;

    public ChildCommand {
        command = List.copyOf(command);
    }

    /** How it ended, and what it printed. */
    public record Output(int exitCode, String text, String errors, long tookNs) {

        public boolean ok() {
            return exitCode == 0;
        }

        /** The last line that says something. */
        public String lastLine() {
            return Programs.lastLine(text + "\n" + errors).orElse("exit code " + exitCode);
        }
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
     * @throws IOException if it fails or takes longer than {@code limit}
     */
    public Output run(Duration limit) throws IOException, InterruptedException {
        Output output = attempt(limit);
        if (!output.ok()) {
            // The last one: a launcher has what it launches behind its own words.
            int main = command.lastIndexOf(Main.class.getName());
            List<String> words = command.subList(main + 1, command.size());
            String what = (main < 0 ? "" : "weft ") + String.join(" ", words);
            throw new IOException(what + ": " + reason(output));
        }
        return output;
    }

    /** Runs it, however it ends; one that does not end within the limit is ended and has failed. */
    Output attempt(Duration limit) throws IOException, InterruptedException {
        Path text = Files.createTempFile(folder, "output-", ".txt");
        Path errors = Files.createTempFile(folder, "errors-", ".txt");
        ProcessBuilder builder =
                new ProcessBuilder(command)
                        .directory(folder.toFile())
                        .redirectInput(new File("/dev/null"))
                        .redirectOutput(text.toFile())
                        .redirectError(errors.toFile());
        long startNs = System.nanoTime();
        Process process = Children.start(builder);
        try {
            boolean ended = process.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS);
            long tookNs = System.nanoTime() - startNs;
            return ended
                    ? new Output(process.exitValue(), read(text), read(errors), tookNs)
                    : new Output(LATE, "", late(limit), tookNs);
        } finally {
            Children.end(process);
            Files.deleteIfExists(text);
            Files.deleteIfExists(errors);
        }
    }

    private static String late(Duration limit) {
        return "not done after " + limit.toSeconds() + " s, ended";
    }

    private static String read(Path file) throws IOException {
        return Files.readString(file, StandardCharsets.ISO_8859_1);
    }

    /** The child's own one-line message where it left one, or those of its ranks. */
    private static String reason(Output output) {
        if (output.exitCode == LATE) {
            return output.errors;
        }
        String prefix = "weft: ";
        String messages =
                output.errors
                        .lines()
                        .filter(line -> line.startsWith(prefix))
                        .map(line -> line.substring(prefix.length()))
                        .distinct()
                        .collect(Collectors.joining("; "));
        return messages.isEmpty() ? "failed with exit code " + output.exitCode : messages;
    }
}
