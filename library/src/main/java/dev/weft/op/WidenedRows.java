package dev.weft.op;

import dev.weft.ffi.LargePages;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.lang.foreign.Arena;

/**
 * Rows of an A of 8 bits as engines multiply them: each element times its scale, rounded to fp32.
 * So a product has the bits of that of the widened matrices, whatever rows come together. They lie
 * in memory that is used again and again. For one thread.
 */
final class WidenedRows {

    private final Scaling scaling;
    private final Matrix rows;

    /**
     * @param mostRows that are widened at a time
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
}
