package dev.weft.compat;

import dev.weft.gemm.Gemms;
import dev.weft.gemm.PackedB;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;

/**
 * B as the engine reads it, packed once for many calls; ranks that are threads may share one. Lives
 * as long as the arena it was packed into.
 *
 * @param dtype of the matrix that was packed; the type of the product depends on it
 */
public record HelionRhs(PackedB packed, DType dtype) {

    /**
     * @param b [K, N], or [N, K] where {@code transposed}
     */
    public static HelionRhs of(Matrix b, boolean transposed, Arena arena) {
        return new HelionRhs(Gemms.auto().pack(b, transposed, arena), b.dtype());
    }
}
