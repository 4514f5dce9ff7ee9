package dev.weft.cli.launch;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.function.Consumer;

/**
 * What a child process has written to a pipe so far. Reading never waits, so it needs no thread.
 * Only the end of a long text is kept. Used by one thread.
 */
final class PipeText {

    private static final int MOST_BYTES = 1 << 20;

    private final InputStream pipe;
    private final Consumer<byte[]> copy;
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

    PipeText(InputStream pipe) {
        this(pipe, some -> {});
    }

    /**
     * @param copy gets everything, as it arrives
     */
    PipeText(InputStream pipe, Consumer<byte[]> copy) {
        this.pipe = pipe;
        this.copy = copy;
    }

    /** What gets everything, as it arrives. */
    Consumer<byte[]> copy() {
        return copy;
    }

    /** Reads what has arrived since the last time. */
    void read() {
        // Under the stream's own lock: otherwise Java could take the bytes away between the two
        // calls when it finds that the process has ended.
        synchronized (pipe) {
            try {
                int count = pipe.available();
                if (bytes.size() + count > MOST_BYTES) {
                    byte[] whole = bytes.toByteArray();
                    bytes.reset();
                    bytes.write(whole, whole.length / 2, whole.length - whole.length / 2);
                }
                byte[] arrived = pipe.readNBytes(count);
                bytes.writeBytes(arrived);
                copy.accept(arrived);
            } catch (IOException e) {
                // Closed: nothing more will come.
                System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "pipe closed", e);
            }
        }
    }

    List<String> lines() {
        return bytes.toString(StandardCharsets.UTF_8).lines().toList();
    }

    /** The last of Weft's own error lines without its prefix, else the last line; may be empty. */
    String lastError() {
        String prefix = "weft: ";
        List<String> lines = lines().stream().filter(line -> !line.isBlank()).toList();
        return lines.stream()
                .filter(line -> line.startsWith(prefix))
                .map(line -> line.substring(prefix.length()))
                .reduce((first, second) -> second)
                .orElse(lines.isEmpty() ? "" : lines.getLast().strip());
    }
}
