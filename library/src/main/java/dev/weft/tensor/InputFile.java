package dev.weft.tensor;

import dev.weft.tensor.MatrixFiles.Located;
import java.io.Closeable;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * A file that is open for reading. Every read is checked against the file's size before memory is
 * allocated, and elements are read only after the headers were found valid. A missing or invalid
 * file is an {@link IllegalArgumentException} with a one-line message that begins with its name.
 * Not thread-safe.
 */
final class InputFile implements Closeable {

    /** Byte buffers are indexed with 32 bits. */
    private static final long MAX_READ_BYTES = 1 << 30;

    private final Path path;
    private final FileChannel channel;
    private final long sizeBytes;

    private InputFile(Path path, FileChannel channel) throws IOException {
        this.path = path;
        this.channel = channel;
        this.sizeBytes = channel.size();
    }

    static InputFile open(Path path) throws IOException {
        // Checked before opening: opening a pipe would block, and opening a directory does not
        // fail.
        if (!Files.exists(path)) {
            throw new IllegalArgumentException(path + ": no such file");
        }
        if (!Files.isRegularFile(path)) {
            throw new IllegalArgumentException(
                    path + ": not a regular file but " + kind(path) + ", which cannot be read");
        }
        try {
            return open(path, FileChannel.open(path, StandardOpenOption.READ));
        } catch (NoSuchFileException e) {
            throw new IllegalArgumentException(path + ": no such file", e);
        } catch (AccessDeniedException e) {
            throw new IllegalArgumentException(path + ": no permission to read it", e);
        }
    }

    private static InputFile open(Path path, FileChannel channel) throws IOException {
        try {
            return new InputFile(path, channel);
        } catch (IOException e) {
            channel.close();
            throw e;
        }
    }

    private static String kind(Path path) {
        return Files.isDirectory(path) ? "a folder" : "a device or pipe";
    }

    long sizeBytes() {
        return sizeBytes;
    }

    /** An error about this file. */
    IllegalArgumentException refusal(String reason) {
        return new IllegalArgumentException(path + ": " + reason);
    }

    IllegalArgumentException refusal(String reason, Exception cause) {
        return new IllegalArgumentException(path + ": " + reason, cause);
    }

    /** A copy of {@code count} bytes, which {@code what} names in the error if there are fewer. */
    byte[] bytes(long position, int count, String what) throws IOException {
        if (count > sizeBytes - position) {
            throw endsTooSoon(position + count, what);
        }
        ByteBuffer buffer = ByteBuffer.allocate(count);
        while (buffer.hasRemaining()) {
            if (channel.read(buffer, position + buffer.position()) < 0) {
                throw endsTooSoon(position + count, what);
            }
        }
        return buffer.array();
    }

    private IllegalArgumentException endsTooSoon(long neededBytes, String what) {
        return refusal(
                "is cut short: %s bytes, its %s alone needs %s"
                        .formatted(sizeBytes, what, neededBytes));
    }

    /** Bytes of a contiguous matrix; refuses an impossible shape. */
    long elementBytes(DType dtype, long rows, long cols) {
        try {
            return Matrix.contiguousBytes(dtype, rows, cols);
        } catch (IllegalArgumentException e) {
            throw refusal(e.getMessage(), e);
        }
    }

    /**
     * The rest of the file from {@code position} on, which must be exactly this matrix.
     *
     * @param float64 whether elements have 64 bits, and will be rounded to fp32
     */
    Located rest(
            long position,
            DType dtype,
            boolean float64,
            boolean fortranOrder,
            long rows,
            long cols) {
        long expected = elementBytes(dtype, rows, cols);
        if (float64) {
            // No file has as many bytes as would overflow.
            expected = expected <= Long.MAX_VALUE / 2 ? 2 * expected : Long.MAX_VALUE;
        }
        if (sizeBytes - position != expected) {
            String type = float64 ? "float64" : dtype.label();
            throw refusal(
                    "holds %s bytes of elements: expected %s for [%s, %s] %s"
                            .formatted(sizeBytes - position, expected, rows, cols, type));
        }
        return new Located(path, position, sizeBytes, dtype, float64, fortranOrder, rows, cols);
    }

    /** A matrix within the file. */
    Located located(long position, DType dtype, long rows, long cols) {
        return new Located(path, position, sizeBytes, dtype, false, false, rows, cols);
    }

    /** A matrix within the file whose rows are blocks. */
    Located located(long position, BlockType blocks, long rows, long cols) {
        return new Located(path, position, sizeBytes, DType.FP32, false, false, rows, cols, blocks);
    }

    /** Maps a matrix of this file, read-only, for as long as {@code arena} lives. */
    Matrix map(Located matrix, Arena arena) throws IOException {
        MemorySegment data =
                channel.map(
                        FileChannel.MapMode.READ_ONLY,
                        matrix.position(),
                        elementBytes(matrix.dtype(), matrix.rows(), matrix.cols()),
                        arena);
        return Matrix.of(data, matrix.dtype(), matrix.rows(), matrix.cols());
    }

    /** Fills {@code target}, which is native, from {@code position} on. */
    void read(long position, MemorySegment target) throws IOException {
        for (long from = 0; from < target.byteSize(); from += MAX_READ_BYTES) {
            long count = Math.min(MAX_READ_BYTES, target.byteSize() - from);
            ByteBuffer buffer = target.asSlice(from, count).asByteBuffer();
            while (buffer.hasRemaining()) {
                if (channel.read(buffer, position + from + buffer.position()) < 0) {
                    throw changed(position + target.byteSize(), channel.size());
                }
            }
        }
    }

    /** The error for a file whose length has changed since it was opened. */
    IOException changed(long expectedBytes, long actualBytes) {
        return new IOException(
                "%s: has changed while it was in use: %s bytes, expected %s"
                        .formatted(path, actualBytes, expectedBytes));
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }
}
