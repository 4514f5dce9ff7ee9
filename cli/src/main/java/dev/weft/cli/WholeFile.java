package dev.weft.cli;

import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.UUID;

/**
 * Files that are there whole or not at all: written under another name in the same folder, and
 * renamed in one step. A write that fails, for want of room or anything else, leaves what was there
 * and nothing beside it. Any thread may call it.
 */
public final class WholeFile {

    private WholeFile() {}

    /** Makes a file. */
    @FunctionalInterface
    public interface Maker {

        /**
         * @param part where to make it; nothing is there yet
         */
        void make(Path part) throws IOException;
    }

    /**
     * Replaces {@code file}; a link stays, the file that it names is replaced.
     *
     * @throws IllegalArgumentException if it is there and is not a regular file
     */
    public static void write(Path file, Maker maker) throws IOException {
        if (Files.exists(file) && !Files.isRegularFile(file)) {
            throw new IllegalArgumentException(file + ": not a regular file, and so not replaced");
        }
        Path target = Files.exists(file) ? file.toRealPath() : file.toAbsolutePath();
        Path part = target.resolveSibling(".weft-" + UUID.randomUUID() + ".part");
        try {
            maker.make(part);
            Files.move(part, target, StandardCopyOption.ATOMIC_MOVE);
        } catch (FileSystemException e) {
            throw e;
        } catch (IOException e) {
            // A full disk is told without the file that did not fit.
            throw new IOException("cannot write " + file + ": " + e.getMessage(), e);
        } finally {
            Files.deleteIfExists(part);
        }
    }
}
