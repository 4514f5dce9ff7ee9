package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.gemm.Deviation;
import dev.weft.gemm.Float64Oracle;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.PackedB;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;

/**
 * Normal data for one case, and the unfused product that every fused one must equal bit for bit.
 */
record Problem(Shards shards, Matrix a, Matrix b, boolean transposed, DType out, Matrix unfused) {

    /** A and B of one type, and a product of 32 bits. */
    static Problem create(Arena arena, Shards shards, long k, long n, DType type, long seed) {
        return create(arena, shards, k, n, type, type, DType.FP32, false, seed);
    }

    static Problem create(
            Arena arena,
            Shards shards,
            long k,
            long n,
            DType aType,
            DType bType,
            DType out,
            boolean transposed,
            long seed) {
        Matrix a = Matrix.allocate(arena, aType, shards.totalRows(), k);
        Matrix b =
                transposed
                        ? Matrix.allocate(arena, bType, n, k)
                        : Matrix.allocate(arena, bType, k, n);
        new NormalData(seed, 0).fill(a);
        new NormalData(seed, 1).fill(b);
        return new Problem(
                shards,
                a,
                b,
                transposed,
                out,
                unfused(Gemms.auto(a.dtype(), b.dtype()), arena, a, b, transposed, out));
    }

    /** One single-threaded product of the whole A. */
    static Matrix unfused(
            Gemm gemm, Arena arena, Matrix a, Matrix b, boolean transposed, DType out) {
        PackedB packed = gemm.pack(b, transposed, arena);
        Matrix c = Matrix.allocate(arena, out, a.rows(), packed.n());
        gemm.multiply(a, 0, a.rows(), packed, c, 0, gemm.scratch(a.cols(), packed.n(), arena));
        return c;
    }

    /** The unfused product is itself judged by an oracle that shares no code with the engines. */
    void requireWithinFloat64Bound() {
        Deviation deviation = new Float64Oracle(a, b, transposed).check(unfused);
        if (!deviation.withinBound()) {
            throw new AssertionError(deviation.describe());
        }
    }

    /** An operator for this case, as far as the case says. */
    AllGatherMatmulBuilder on(Fabric fabric) {
        return AllGatherMatmul.on(fabric).a(shards, a.dtype()).b(b, transposed).output(out);
    }

    /** The first rows of each shard. */
    Problem first(Shards fewer) {
        return new Problem(fewer, first(a, fewer), b, transposed, out, first(unfused, fewer));
    }

    private Matrix first(Matrix of, Shards fewer) {
        Matrix rows = Matrix.allocate(Arena.ofAuto(), of.dtype(), fewer.totalRows(), of.cols());
        for (int r = 0; r < fewer.ranks(); r++) {
            Matrix part = of.rows(shards.firstRow(r), fewer.rows(r));
            rows.rows(fewer.firstRow(r), fewer.rows(r)).copyFrom(part);
        }
        return rows;
    }

    Matrix shard(int rank) {
        return a.rows(shards.firstRow(rank), shards.rows(rank));
    }
}
