package dev.weft.op;

import dev.weft.gemm.PackedB;
import dev.weft.op.exec.OperatorMemory;
import dev.weft.tensor.Matrix;

/**
 * One right-hand side and the results it fills.
 *
 * @param second the right-hand side whose products an epilogue joins to these; else null
 * @param halves what calls fill in turn; one matrix twice where only this rank reads it
 * @param peers by half and rank, where peers are to read it: their results, null on other hosts;
 *     otherwise null
 */
record Product(PackedB b, PackedB second, Matrix[] halves, Matrix[][] peers) {

    Matrix c(int call) {
        return halves[OperatorMemory.half(call)];
    }
}
