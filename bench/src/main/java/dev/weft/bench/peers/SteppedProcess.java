package dev.weft.bench.peers;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * A program that does one thing per line it is given and answers each with one line. Its first line
 * says that it is ready. Used by one thread.
 */
public final class SteppedProcess implements AutoCloseable {

    private static final String END = "\0end";
    private static final Duration START = Duration.ofSeconds(60);
    private static final Duration STEP = Duration.ofSeconds(120);
    private static final Duration LEAVE = Duration.ofSeconds(5);

    private final String name;
    private final Path errors;
    private final Process process;
    private final BufferedWriter lines;
    private final BlockingQueue<String> answers = new LinkedBlockingQueue<>();
    private String ready;
    private boolean silent;

    /** A program that did not answer, or answered something else: one line that says why. */
    public static final class PeerException extends IOException {

        private static final long serialVersionUID = 1L;

        PeerException(String message) {
            super(message);
        }
    }

    private SteppedProcess(
            String name, List<String> command, Map<String, String> environment, Path folder)
            throws IOException {
        this.name = name;
        this.errors = Files.createTempFile(folder, "peer", ".err");
        ProcessBuilder builder = new ProcessBuilder(command).redirectError(errors.toFile());
        builder.environment().putAll(environment);
        environment.forEach((variable, value) -> builder.environment().remove(variable, ""));
        this.process = Children.start(builder);
        this.lines = process.outputWriter(StandardCharsets.UTF_8);
        Thread.ofPlatform().daemon().name("weft-peer").start(this::read);
    }

    /**
     * Starts one and waits until it says that it is ready.
     *
     * @param name for messages
     * @param environment on top of this process's own; an empty value removes a variable
     * @param folder for what it writes to its standard error
     */
    public static SteppedProcess started(
            String name, List<String> command, Map<String, String> environment, Path folder)
            throws IOException, InterruptedException {
        SteppedProcess process = new SteppedProcess(name, command, environment, folder);
        try {
            process.ready = process.answer(START);
            return process;
        } catch (Throwable e) {
            process.close();
            throw e;
        }
    }

    /** The line that said that it is ready. */
    public String ready() {
        return ready;
    }

    private void read() {
        try (BufferedReader reader = process.inputReader(StandardCharsets.UTF_8)) {
            reader.lines().forEach(answers::add);
        } catch (IOException | java.io.UncheckedIOException e) {
            // The stream of a program that was ended closes under the reader: the end, too.
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, name, e);
        } finally {
            answers.add(END);
        }
    }

    /** Gives it one line and waits for its answer, for some minutes at most. */
    public String ask(String line) throws PeerException, InterruptedException {
        return ask(line, STEP);
    }

    public String ask(String line, Duration deadline) throws PeerException, InterruptedException {
        tell(line);
        return answer(deadline);
    }

    /** Gives it one line; {@link #answer()} comes next. For programs that wait for each other. */
    public void tell(String line) throws PeerException {
        try {
            lines.write(line);
            lines.newLine();
            lines.flush();
        } catch (IOException e) {
            throw new PeerException(name + " takes no more lines" + lastWords());
        }
    }

    /** The answer to the line before, for which it waits some minutes at most. */
    public String answer() throws PeerException, InterruptedException {
        return answer(STEP);
    }

    private String answer(Duration deadline) throws PeerException, InterruptedException {
        String answer = answers.poll(deadline.toMillis(), TimeUnit.MILLISECONDS);
        if (answer == null) {
            silent = true;
            throw new PeerException(
                    name + " did not answer within " + deadline.toSeconds() + " s" + lastWords());
        }
        if (answer.equals(END)) {
            process.waitFor(LEAVE.toMillis(), TimeUnit.MILLISECONDS);
            throw new PeerException(name + " has ended" + lastWords());
        }
        return answer;
    }

    /** The last line of its standard error that says something. */
    private String lastWords() {
        try {
            return Programs.lastLine(Files.readString(errors, StandardCharsets.ISO_8859_1))
                    .map(line -> ": " + line)
                    .orElse("");
        } catch (IOException e) {
            return ": " + e.getMessage();
        }
    }

    /**
     * The end of its standard input lets it leave by itself; if it does not, or has not answered
     * before, it is ended.
     */
    @Override
    public void close() {
        try {
            lines.close();
            process.waitFor(silent ? 0 : LEAVE.toMillis(), TimeUnit.MILLISECONDS);
        } catch (IOException e) {
            // It has gone already, and took the pipe with it.
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, name, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            Children.end(process);
        }
    }
}
