package dev.weft.op;

import dev.weft.gemm.PackedB;
import dev.weft.tensor.Matrix;

/** One right-hand side and the result it fills. */
record Product(PackedB b, Matrix c) {}
