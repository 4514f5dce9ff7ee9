package dev.weft.cuda.kernel;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;

/**
 * A B with scales as the kernel for 8 bits reads it. Pure.
 *
 * @param values [N, K]
 * @param scales one row: by column of C, or by 128 of K and then by 128 columns
 */
public record ScaledB(Matrix values, Matrix scales) {

    private static final int BLOCK = 128;

    /**
     * @param b [K, N], or [N, K] if {@code transposed}
     * @param scaling of A: with scales by block, those of B must be the same within each block too,
     *     otherwise within each column
     */
    public static ScaledB of(ScaledMatrix b, boolean transposed, Scaling scaling, Arena arena) {
        Matrix values = transposed ? b.values() : turned(b.values(), arena);
        long n = values.rows();
        long k = values.cols();
        long scaleK = transposed ? b.scaleCols() : b.scaleRows();
        long scaleN = transposed ? b.scaleRows() : b.scaleCols();
        boolean byBlock = scaling == Scaling.BLOCK;
        boolean fits =
                byBlock
                        ? (scaleK % BLOCK == 0 || scaleK >= k)
                                && (scaleN % BLOCK == 0 || scaleN >= n)
                        : scaleK >= k;
        if (!fits) {
            throw new IllegalArgumentException(
                    "B with a scale for %s of K x %s columns, A with scales by %s: on the GPU expected %s"
                            .formatted(
                                    scaleK,
                                    scaleN,
                                    scaling.label(),
                                    byBlock ? "multiples of 128" : "scales of whole columns"));
        }
        long kBlocks = byBlock ? Math.ceilDiv(k, BLOCK) : 1;
        long step = byBlock ? BLOCK : 1;
        long across = Math.ceilDiv(n, step);
        Matrix scales = Matrix.allocate(arena, DType.FP32, 1, kBlocks * across);
        for (long block = 0; block < kBlocks; block++) {
            for (long i = 0; i < across; i++) {
                long row = block * BLOCK / scaleK;
                long col = i * step / scaleN;
                float scale = transposed ? b.scales().get(col, row) : b.scales().get(row, col);
                scales.set(0, block * across + i, scale);
            }
        }
        return new ScaledB(values, scales);
    }

    /** Columns become rows, some at a time, so that what is read stays in a near cache. */
    private static Matrix turned(Matrix b, Arena arena) {
        Matrix turned = Matrix.allocate(arena, b.dtype(), b.cols(), b.rows());
        for (long first = 0; first < b.cols(); first += BLOCK) {
            long end = Math.min(b.cols(), first + BLOCK);
            for (long row = 0; row < b.rows(); row++) {
                for (long col = first; col < end; col++) {
                    byte bits = b.data().get(ValueLayout.JAVA_BYTE, b.offset(row, col));
                    turned.data().set(ValueLayout.JAVA_BYTE, turned.offset(col, row), bits);
                }
            }
        }
        return turned;
    }
}
