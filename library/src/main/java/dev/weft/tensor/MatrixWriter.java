package dev.weft.tensor;

import dev.weft.files.AtomicFile;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.List;

/** Writes matrices into files, completely or not at all. Thread-safe. */
final class MatrixWriter {

    /** Rows with gaps between them are collected up to this size before they are written. */
    private static final long STAGING_BYTES = 1 << 20;

    /** Byte buffers are indexed with 32 bits. */
    private static final long MAX_WRITE_BYTES = 1 << 30;

    private MatrixWriter() {}

    /** Writes {@code header}, then the elements of the matrices without gaps. */
    static void write(Path target, byte[] header, List<Matrix> matrices) throws IOException {
        AtomicFile.write(
                target,
                channel -> {
                    writeAll(channel, MemorySegment.ofArray(header));
                    for (Matrix matrix : matrices) {
                        writeElements(channel, matrix);
                    }
                });
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
