package dev.weft.exec.host;

import dev.weft.ffi.LargePages;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.lang.foreign.Arena;

/**
 * Widens rows of an 8-bit A for the engines: each element times its scale, rounded to fp32. So the
 * product has the bits of a product of the widened matrices, whichever rows are multiplied
 * together. The rows are kept in reused memory. For one thread.
 */
final class WidenedRows {

    private final Scaling scaling;
    private final Matrix rows;

    /**
     * @param mostRows the most rows that are widened at a time
     */
    WidenedRows(Scaling scaling, long mostRows, long k, Arena arena) {
        this.scaling = scaling;
        long bytes = Matrix.contiguousBytes(DType.FP32, mostRows, k);
        this.rows = Matrix.of(LargePages.allocate(bytes, arena), DType.FP32, mostRows, k);
    }

    long mostRows() {
        return rows.rows();
    }

    /** The values of {@code count} rows, from row 0 on, until the next call. */
    Matrix of(Matrix travelled, long firstRow, long count) {
        ScaledMatrix.dequantizeRows(travelled, scaling, firstRow, count, rows);
        return rows;
    }

    /** Writes the values of one row into a row of another matrix. */
    void into(Matrix travelled, long row, Matrix target, long targetRow) {
        ScaledMatrix.dequantizeRows(travelled, scaling, row, 1, target.rows(targetRow, 1));
    }
}
