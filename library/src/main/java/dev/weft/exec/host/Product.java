package dev.weft.exec.host;

import dev.weft.gemm.PackedB;
import dev.weft.tensor.Matrix;

/**
 * A right-hand side and the results of its products.
 *
 * @param second the right-hand side that an epilogue joins to this one, else null
 * @param halves the results that calls write in turn; the same matrix twice if only this rank reads
 *     it
 * @param peers by half and rank: the peers' results if they are shared, null for other hosts;
 *     otherwise null
 */
public record Product(PackedB b, PackedB second, Matrix[] halves, Matrix[][] peers) {

    /** The result of a call. */
    public Matrix c(int call) {
        return halves[StepMemory.copy(call)];
    }
}
