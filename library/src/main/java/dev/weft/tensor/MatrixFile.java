package dev.weft.tensor;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;

/**
 * A matrix in a file, as {@link MatrixFiles#locate} has found it. Its elements are read, all or
 * some of them, into memory of the caller, so that later changes of the file do not matter. Any
 * thread may call it.
 *
 * @param position the offset of its first element
 * @param fileBytes the length of the file when it was located
 */
public record MatrixFile(
        Path path, long position, long fileBytes, DType dtype, long rows, long cols) {

    /** Rows of which only some columns are wanted are read up to this size at a time. */
    private static final long STAGING_BYTES = 1 << 20;

    /**
     * Reads all of it into memory that lives as long as {@code arena}.
     *
     * @throws IOException if the file is no longer as it was
     */
    public Matrix read(Arena arena) throws IOException {
        Matrix matrix = Matrix.allocate(arena, dtype, rows, cols);
        read(0, 0, matrix);
        return matrix;
    }

    /**
     * Reads the block that begins at a row and a column into {@code target}.
     *
     * @throws IOException if the file is no longer as it was
     */
    public void read(long firstRow, long firstCol, Matrix target) throws IOException {
        if (target.dtype() != dtype
                || firstRow < 0
                || firstCol < 0
                || firstRow > rows - target.rows()
                || firstCol > cols - target.cols()) {
            throw new IllegalArgumentException(
                    "%s: holds %s: asked for %s from row %s, column %s"
                            .formatted(path, describe(), target.describe(), firstRow, firstCol));
        }
        try (InputFile file = InputFile.open(path)) {
            if (file.sizeBytes() != fileBytes) {
                throw file.changed(fileBytes, file.sizeBytes());
            }
            if (target.elementBytes() > 0) {
                read(file, firstRow, firstCol, target);
            }
        } catch (IllegalArgumentException e) {
            // It was there and could be read when it was located.
            throw new IOException(e.getMessage(), e);
        }
    }

    private void read(InputFile file, long firstRow, long firstCol, Matrix target)
            throws IOException {
        long rowBytes = cols * dtype.bytes();
        if (target.cols() == cols && target.isContiguous() && target.data().isNative()) {
            MemorySegment elements = target.data().asSlice(0, target.elementBytes());
            file.read(position + firstRow * rowBytes, elements);
            return;
        }
        long batchRows = Math.clamp(STAGING_BYTES / rowBytes, 1, target.rows());
        try (Arena arena = Arena.ofConfined()) {
            Matrix staging = Matrix.allocate(arena, dtype, batchRows, cols);
            for (long row = 0; row < target.rows(); row += batchRows) {
                long count = Math.min(batchRows, target.rows() - row);
                MemorySegment elements = staging.data().asSlice(0, count * rowBytes);
                file.read(position + (firstRow + row) * rowBytes, elements);
                target.rows(row, count).copyFrom(staging.block(0, count, firstCol, target.cols()));
            }
        }
    }

    /** Shape and type, as in {@link Matrix#describe}. */
    public String describe() {
        return "[" + rows + ", " + cols + "] " + dtype.label();
    }
}
