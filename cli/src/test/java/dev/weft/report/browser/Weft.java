package dev.weft.report.browser;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.cli.ChildProcess;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The command in a JVM of its own, as users start it; {@link #close} ends what still runs. */
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

    /** Runs a command of words without blanks, which must succeed. */
    static void run(Path folder, String words) throws IOException, InterruptedException {
        run(folder, List.of(words.split(" ")));
    }

    static void run(Path folder, List<String> arguments) throws IOException, InterruptedException {
        try (Weft weft = start(folder, arguments)) {
            weft.awaitSuccess();
        }
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
