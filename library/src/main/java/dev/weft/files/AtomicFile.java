package dev.weft.files;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Writes files atomically: the bytes go to a temporary file in the target's folder, which is synced
 * to disk and then renamed. So a reader never sees half a file, and a process that has mapped the
 * old file keeps it. If a write fails, for example for lack of space, or the process is told to end
 * meanwhile, the old file stays and no temporary file is left. Thread-safe.
 */
public final class AtomicFile {

    private AtomicFile() {}

    /** Writes the content of a file. */
    @FunctionalInterface
    public interface Content {

        /**
         * @param channel an empty file, which the caller closes
         */
        void write(FileChannel channel) throws IOException;
    }

    public static void write(Path file, String text) throws IOException {
        write(file, text.getBytes(StandardCharsets.UTF_8));
    }

    public static void write(Path file, byte[] bytes) throws IOException {
        write(file, channel -> writeAll(channel, bytes));
    }

    static void writeAll(FileChannel channel, byte[] bytes) throws IOException {
        ByteBuffer rest = ByteBuffer.wrap(bytes);
        while (rest.hasRemaining()) {
            channel.write(rest);
        }
    }

    /**
     * Replaces {@code file}. If it is a link, the file that it names is replaced.
     *
     * @throws IllegalArgumentException if it exists and is not a regular file, or if its folder
     *     does not exist or may not be written to
     */
    public static void write(Path file, Content content) throws IOException {
        Path target = target(file);
        TemporaryFiles.removeLeftOnce(target.getParent());
        Path temporary = target.resolveSibling(TemporaryFiles.newName());
        try (FileChannel channel = TemporaryFiles.create(temporary)) {
            content.write(channel);
            channel.force(true);
            TemporaryFiles.rename(temporary, target);
        } catch (AccessDeniedException e) {
            throw new IllegalArgumentException(
                    file + ": no permission to write into the folder " + target.getParent(), e);
        } catch (FileSystemException e) {
            throw e;
        } catch (IOException e) {
            // The error of a full disk does not name the file.
            throw new IOException("cannot write " + file + ": " + e.getMessage(), e);
        } finally {
            TemporaryFiles.discard(temporary);
        }
    }

    private static Path target(Path file) throws IOException {
        if (Files.exists(file)) {
            if (!Files.isRegularFile(file)) {
                throw new IllegalArgumentException(
                        file + ": not a regular file, and so not replaced");
            }
            return file.toRealPath();
        }
        Path absolute = file.toAbsolutePath();
        if (!Files.isDirectory(absolute.getParent())) {
            throw new IllegalArgumentException(
                    file + ": the folder " + absolute.getParent() + " does not exist");
        }
        return absolute;
    }
}
