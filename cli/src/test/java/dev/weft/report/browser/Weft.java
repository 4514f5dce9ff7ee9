package dev.weft.report.browser;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The command in a JVM of its own, as users start it; {@link #close} ends what still runs. */
final class Weft implements AutoCloseable {

    private static final Duration LIMIT = Duration.ofSeconds(180);
    private static final Pattern ADDRESS = Pattern.compile("http://127\\.0\\.0\\.1:\\d+/[\\w-]+/");

    private final List<String> arguments;
    private final Path output;
    private final Process process;

    private Weft(List<String> arguments, Path output, Process process) {
        this.arguments = arguments;
        this.output = output;
        this.process = process;
    }

    /**
     * Starts the command.
     *
     * @param folder where it runs: relative names in {@code arguments} are in there
     */
    static Weft start(Path folder, List<String> arguments) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(
                List.of(
                        "--add-modules",
                        "jdk.incubator.vector",
                        "--enable-native-access=ALL-UNNAMED",
                        "-cp",
                        System.getProperty("java.class.path"),
                        "dev.weft.cli.Main"));
        command.addAll(arguments);
        Path output = Files.createTempFile(folder, "command-", ".log");
        Process process =
                new ProcessBuilder(command)
                        .directory(folder.toFile())
                        .redirectErrorStream(true)
                        .redirectOutput(output.toFile())
                        .start();
        return new Weft(arguments, output, process);
    }

    /** Runs a command of words without blanks, which must succeed. */
    static void run(Path folder, String words) throws IOException, InterruptedException {
        run(folder, List.of(words.split(" ")));
    }

    static void run(Path folder, List<String> arguments) throws IOException, InterruptedException {
        try (Weft weft = start(folder, arguments)) {
            weft.awaitSuccess();
        }
    }

    void awaitSuccess() throws IOException, InterruptedException {
        if (!process.waitFor(LIMIT.toSeconds(), TimeUnit.SECONDS)) {
            throw new AssertionError(arguments + " hangs: " + output());
        }
        assertEquals(0, process.exitValue(), () -> arguments + ": " + outputOrWhyNot());
    }

    boolean isRunning() {
        return process.isAlive();
    }

    /** Where it serves its page, once it has said so. */
    URI address() throws IOException, InterruptedException {
        long until = System.nanoTime() + LIMIT.toNanos();
        while (true) {
            // Asked before: what it printed last counts as well.
            boolean running = process.isAlive();
            Matcher address = ADDRESS.matcher(output());
            if (address.find()) {
                return URI.create(address.group());
            }
            if (!running || System.nanoTime() > until) {
                throw new AssertionError(arguments + " told no address: " + output());
            }
            process.waitFor(20, TimeUnit.MILLISECONDS);
        }
    }

    private String output() throws IOException {
        return Files.readString(output);
    }

    private String outputOrWhyNot() {
        try {
            return output();
        } catch (IOException e) {
            return e.toString();
        }
    }

    @Override
    public void close() {
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
    }
}
