package dev.weft.report.browser;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.cli.ChildProcess;
import dev.weft.cli.Invocation;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The command in a JVM of its own, as users start it, which {@link #close} ends; or in this one.
 */
final class Weft implements AutoCloseable {

    private static final Pattern ADDRESS = Pattern.compile("http://127\\.0\\.0\\.1:\\d+/[\\w-]+/");

    private final ChildProcess process;

    private Weft(ChildProcess process) {
        this.process = process;
    }

    /**
     * Starts the command.
     *
     * @param folder where it runs: relative names in {@code arguments} are in there
     */
    static Weft start(Path folder, List<String> arguments) throws IOException {
        return new Weft(ChildProcess.weft(folder, arguments).inFolder().start());
    }

    /** {@link #run(Path, List)} of words without blanks. */
    static void run(Path folder, String words) {
        run(folder, List.of(words.split(" ")));
    }

    /**
     * A command, which must succeed, in this JVM: its files, and {@code out}, are in the folder.
     */
    static void run(Path folder, List<String> arguments) {
        Invocation run =
                Invocation.of(
                        arguments.stream()
                                .map(word -> isFile(word) ? folder.resolve(word).toString() : word)
                                .toArray(String[]::new));
        assertEquals(0, run.code(), run.err() + run.out());
    }

    private static boolean isFile(String word) {
        return word.equals("out") || word.endsWith(".json") || word.endsWith(".html");
    }

    void awaitSuccess() throws InterruptedException {
        assertEquals(0, process.code(), process::toString);
    }

    boolean isRunning() {
        return process.process().isAlive();
    }

    /** Where it serves its page, once it has said so. */
    URI address() throws Exception {
        process.await(() -> ADDRESS.matcher(process.out()).find());
        Matcher address = ADDRESS.matcher(process.out());
        address.find();
        return URI.create(address.group());
    }

    @Override
    public void close() {
        process.close();
    }
}
