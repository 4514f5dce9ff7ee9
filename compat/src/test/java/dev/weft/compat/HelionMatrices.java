package dev.weft.compat;

import dev.weft.fabric.Fabric;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.PackedB;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;

/** What the Helion tests gather and multiply, and the product that they expect. */
final class HelionMatrices {

    private HelionMatrices() {}

    /** One single-threaded product of the whole A. */
    static Matrix unfused(Arena arena, Matrix a, Matrix b, boolean transposed) {
        Gemm gemm = Gemms.auto(a.dtype(), b.dtype());
        PackedB packed = gemm.pack(b, transposed, arena);
        DType type = DType.promote(a.dtype(), b.dtype());
        Matrix c = Matrix.allocate(arena, type, a.rows(), packed.n());
        gemm.multiply(a, 0, a.rows(), packed, c, 0, gemm.scratch(a.cols(), packed.n(), arena));
        return c;
    }

    static Matrix normal(Arena arena, DType dtype, long rows, long cols, long stream) {
        Matrix matrix = Matrix.allocate(arena, dtype, rows, cols);
        new NormalData(3, stream).fill(matrix);
        return matrix;
    }

    static HelionShared<Matrix> shard(Fabric fabric, Matrix a) {
        long rows = a.rows() / fabric.size();
        HelionShared<Matrix> shared = Helion.empty(fabric, rows, a.cols(), a.dtype());
        shared.local().copyFrom(a.rows(fabric.rank() * rows, rows));
        return shared;
    }
}
