package dev.weft.op;

import dev.weft.gemm.PackedB;
import dev.weft.op.exec.OperatorMemory;
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
record Product(PackedB b, PackedB second, Matrix[] halves, Matrix[][] peers) {

    Matrix c(int call) {
        return halves[OperatorMemory.half(call)];
    }
}
