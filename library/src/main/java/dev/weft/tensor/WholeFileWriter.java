package dev.weft.tensor;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.UUID;

/**
 * Writes files that are whole or absent: the bytes go to a temporary file in the target's folder,
 * reach the disk, and only then take the target's name in one step. So nobody ever sees half a
 * file, and who has mapped the old one keeps it. A failed write leaves the target as it was. Any
 * thread may call it.
 */
final class WholeFileWriter {

    /** Rows with gaps between them are gathered up to this size before they are written. */
    private static final long STAGING_BYTES = 1 << 20;

    /** Byte buffers are indexed with 32 bits. */
    private static final long MAX_WRITE_BYTES = 1 << 30;

    private WholeFileWriter() {}

    /** Writes {@code header} and after it the elements of the matrices, without any gaps. */
    static void write(Path target, byte[] header, List<Matrix> matrices) throws IOException {
        Path destination = destination(target);
        Path temporary = destination.resolveSibling(".weft-" + UUID.randomUUID() + ".part");
        try {
            writeTemporary(temporary, header, matrices);
            Files.move(temporary, destination, StandardCopyOption.ATOMIC_MOVE);
        } catch (AccessDeniedException e) {
            throw new IllegalArgumentException(
                    target + ": no permission to write into the folder " + destination.getParent(),
                    e);
        } catch (FileSystemException e) {
            throw e;
        } catch (IOException e) {
            // A full disk is told without the file that did not fit.
            throw new IOException("cannot write " + target + ": " + e.getMessage(), e);
        } finally {
            Files.deleteIfExists(temporary);
        }
    }

    /** The absolute path to replace: a link stays, the file that it names is replaced. */
    private static Path destination(Path target) throws IOException {
        if (Files.exists(target)) {
            if (!Files.isRegularFile(target)) {
                throw new IllegalArgumentException(
                        target + ": not a regular file, and so not replaced");
            }
            return target.toRealPath();
        }
        Path absolute = target.toAbsolutePath();
        if (!Files.isDirectory(absolute.getParent())) {
            throw new IllegalArgumentException(
                    target + ": the folder " + absolute.getParent() + " does not exist");
        }
        return absolute;
    }

    private static void writeTemporary(Path temporary, byte[] header, List<Matrix> matrices)
            throws IOException {
        try (FileChannel channel =
                FileChannel.open(
                        temporary, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            writeAll(channel, MemorySegment.ofArray(header));
            for (Matrix matrix : matrices) {
                writeElements(channel, matrix);
            }
            channel.force(true);
        }
    }

    private static void writeElements(FileChannel channel, Matrix matrix) throws IOException {
        if (matrix.elementBytes() == 0) {
            return;
        }
        if (matrix.isContiguous() && matrix.data().isNative()) {
            writeAll(channel, matrix.data().asSlice(0, matrix.elementBytes()));
            return;
        }
        long batchRows = Math.clamp(STAGING_BYTES / matrix.rowBytes(), 1, matrix.rows());
        try (Arena arena = Arena.ofConfined()) {
            Matrix staging = Matrix.allocate(arena, matrix.dtype(), batchRows, matrix.cols());
            for (long row = 0; row < matrix.rows(); row += batchRows) {
                long rows = Math.min(batchRows, matrix.rows() - row);
                Matrix batch = staging.rows(0, rows);
                batch.copyFrom(matrix.rows(row, rows));
                writeAll(channel, batch.data().asSlice(0, batch.elementBytes()));
            }
        }
    }

    private static void writeAll(FileChannel channel, MemorySegment bytes) throws IOException {
        for (long from = 0; from < bytes.byteSize(); from += MAX_WRITE_BYTES) {
            long count = Math.min(MAX_WRITE_BYTES, bytes.byteSize() - from);
            ByteBuffer buffer = bytes.asSlice(from, count).asByteBuffer();
            while (buffer.hasRemaining()) {
                channel.write(buffer);
            }
        }
    }
}
