package dev.weft.tensor.data;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;

/**
 * Generated data: a fixed value for every index. So ranks generate their own shards and agree on
 * the whole. Implementations are stateless and thread-safe; several threads may fill different
 * parts of one matrix, if its segment allows it.
 */
@FunctionalInterface
public interface DataSource {

    /** The value of element {@code index}, counted row after row from zero on. */
    float value(long index);

    /** Fills a whole matrix. */
    default void fill(Matrix matrix) {
        fill(matrix, 0, 0, matrix.cols());
    }

    /**
     * Fills {@code block} with the rectangle that starts at ({@code firstRow}, {@code firstCol}) of
     * a matrix with {@code totalCols} columns, each value rounded to the block's type.
     */
    default void fill(Matrix block, long firstRow, long firstCol, long totalCols) {
        checkInside(block, firstRow, firstCol, totalCols);
        DType dtype = block.dtype();
        for (long row = 0; row < block.rows(); row++) {
            long index = (firstRow + row) * totalCols + firstCol;
            long offset = block.offset(row, 0);
            for (long col = 0; col < block.cols(); col++) {
                dtype.write(block.data(), offset + col * dtype.bytes(), value(index + col));
            }
        }
    }

    private static void checkInside(Matrix block, long firstRow, long firstCol, long totalCols) {
        boolean inside =
                firstRow >= 0
                        && firstCol >= 0
                        && block.cols() <= totalCols
                        && firstCol <= totalCols - block.cols()
                        && firstRow <= Long.MAX_VALUE / Math.max(1, totalCols) - block.rows();
        if (!inside) {
            throw new IllegalArgumentException(
                    """
                    cannot fill %s from row %s and column %s of a matrix of %s columns: it must \
                    lie inside, and its indices in 64 bits"""
                            .formatted(block.describe(), firstRow, firstCol, totalCols));
        }
    }
}
