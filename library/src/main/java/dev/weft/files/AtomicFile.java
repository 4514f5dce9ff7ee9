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
 * Writes files that are whole or absent: the bytes go to a part file in the target's folder, reach
 * the disk, and only then take the target's name in one step. So nobody ever sees half a file, and
 * who has mapped the old one keeps it. A write that fails, for want of room or anything else,
 * leaves what was there and nothing beside it, and so does a process that is told to end meanwhile.
 * Any thread may call it.
 */
public final class AtomicFile {

    private AtomicFile() {}

    /** What is written. */
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
     * Replaces {@code file}; a link stays, the file that it names is replaced.
     *
     * @throws IllegalArgumentException if it is there and is not a regular file, or if its folder
     *     does not exist or may not be written to
     */
    public static void write(Path file, Content content) throws IOException {
        Path target = target(file);
        TemporaryFiles.removeLeftOnce(target.getParent());
        Path part = target.resolveSibling(TemporaryFiles.newName());
        try (FileChannel channel = TemporaryFiles.create(part)) {
            content.write(channel);
            channel.force(true);
            TemporaryFiles.rename(part, target);
        } catch (AccessDeniedException e) {
            throw new IllegalArgumentException(
                    file + ": no permission to write into the folder " + target.getParent(), e);
        } catch (FileSystemException e) {
            throw e;
        } catch (IOException e) {
            // A full disk is told without the file that did not fit.
            throw new IOException("cannot write " + file + ": " + e.getMessage(), e);
        } finally {
            TemporaryFiles.discard(part);
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
