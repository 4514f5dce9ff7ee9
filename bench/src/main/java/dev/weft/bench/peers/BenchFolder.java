package dev.weft.bench.peers;

import dev.weft.files.Folders;
import dev.weft.process.ShutdownHooks;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A folder for one bench's own files. It is removed when it is closed, and when the JVM ends
 * otherwise than by being killed.
 */
public final class BenchFolder implements AutoCloseable {

    private final Path path;
    private final Thread hook = new Thread(this::removeAtEnd, "weft-bench-folder");

    private BenchFolder(Path path) {
        this.path = path;
    }

    public static BenchFolder create() throws IOException {
        BenchFolder folder = new BenchFolder(Files.createTempDirectory("weft-bench-"));
        if (!ShutdownHooks.add(folder.hook)) {
            Folders.delete(folder.path);
            throw new IOException("told to end");
        }
        return folder;
    }

    public Path path() {
        return path;
    }

    private void removeAtEnd() {
        Children.endAll();
        try {
            Folders.delete(path);
        } catch (IOException | UncheckedIOException e) {
            System.err.println("weft: cannot remove " + path + ": " + e.getMessage());
        }
    }

    @Override
    public void close() throws IOException {
        Folders.delete(path);
        ShutdownHooks.remove(hook);
    }
}
