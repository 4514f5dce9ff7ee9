package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.util.Random;

/** All of A and B of sums over ranks, who has what of them, and what they are expected to be. */
record SumProblem(Shards rows, Shards kParts, Matrix a, Matrix b, boolean transposed, DType out) {

    static SumProblem random(
            Arena arena, Shards rows, Shards kParts, long n, DType in, DType out, boolean t) {
        Random random = new Random(rows.totalRows() * 31 + kParts.totalRows() * 7 + n);
        long k = kParts.totalRows();
        Matrix a = Matrix.allocate(arena, in, rows.totalRows(), k);
        Matrix b = Matrix.allocate(arena, in, t ? n : k, t ? k : n);
        DeviceProblem.fill(a, random);
        DeviceProblem.fill(b, random);
        return new SumProblem(rows, kParts, a, b, t, out);
    }

    int ranks() {
        return rows.ranks();
    }

    long n() {
        return transposed ? b.rows() : b.cols();
    }

    Matrix a(long from, long to) {
        return a.block(0, a.rows(), from, to - from);
    }

    Matrix b(long from, long to) {
        return transposed
                ? b.block(0, b.rows(), from, to - from)
                : b.block(from, to - from, 0, b.cols());
    }

    long begin(int rank) {
        return kParts.firstRow(rank);
    }

    long end(int rank) {
        return kParts.firstRow(rank) + kParts.rows(rank);
    }

    Matrix aOf(int rank) {
        return a(begin(rank), end(rank));
    }

    CudaMatmulReduceBuilder describe(CudaMatmulReduceBuilder builder, int rank) {
        return builder.a(rows, kParts, a.dtype())
                .b(b(begin(rank), end(rank)), transposed)
                .output(out);
    }

    static Matrix download(DeviceMatrix from, Arena arena) {
        Matrix host = Matrix.allocate(arena, from.dtype(), from.rows(), from.cols());
        try (GpuStream stream = GpuStream.create()) {
            from.download(host, stream);
        }
        return host;
    }

    /** The product over a part of K on one rank, by the operator that has no sums. */
    Matrix product(Gpu gpu, long from, long to, DType type, Arena arena) {
        Matrix c = Matrix.allocate(arena, type, a().rows(), n());
        if (to > from && c.rows() > 0) {
            try (GpuStream stream = GpuStream.create();
                    CudaAllGatherMatmul op =
                            CudaAllGatherMatmul.withHostPeers(gpu, 0)
                                    .a(Shards.even(c.rows(), 1), a().dtype())
                                    .b(b(from, to), transposed())
                                    .output(type)
                                    .prepare()) {
                op.nextShard().upload(a(from, to), stream);
                op.callInPlace(View.PIPELINED).product().download(c, stream);
            }
        }
        return c;
    }

    /** By definition: parts from zero, added in rank order, rounded once. */
    Matrix byRank(Gpu gpu, Arena arena) {
        return byRank(gpu, DType.FP32, arena);
    }

    /** The same with parts that are rounded to {@code partType} before they are added. */
    Matrix byRank(Gpu gpu, DType partType, Arena arena) {
        Matrix sum = Matrix.allocate(arena, DType.FP32, a().rows(), n());
        boolean first = true;
        for (int r = 0; r < ranks(); r++) {
            if (kParts().rows(r) == 0) {
                continue;
            }
            Matrix part =
                    product(gpu, begin(r), end(r), DType.FP32, arena).converted(arena, partType);
            for (long i = 0; i < sum.rows(); i++) {
                for (long j = 0; j < sum.cols(); j++) {
                    sum.set(i, j, first ? part.get(i, j) : sum.get(i, j) + part.get(i, j));
                }
            }
            first = false;
        }
        Matrix rounded = Matrix.allocate(arena, out(), sum.rows(), sum.cols());
        for (long i = 0; i < sum.rows(); i++) {
            for (long j = 0; j < sum.cols(); j++) {
                rounded.set(i, j, sum.get(i, j));
            }
        }
        return rounded;
    }

    static void callPoisoned(Gpu gpu, CudaMatmulReduce op, Matrix a) {
        try (DeviceCheck check = new DeviceCheck(gpu);
                GpuStream stream = GpuStream.create()) {
            op.nextShard().upload(a, stream);
            check.poison(op.product(0));
            op.call(op.nextShard());
        }
    }

    static void assertSame(Matrix expected, Matrix found, String what) {
        assertTrue(
                expected.bitwiseEquals(found),
                () -> what + " differs from row " + expected.firstDifferentRow(found) + " on");
    }

    Matrix rowsFor(Matrix whole, int rank, boolean all) {
        return all ? whole : whole.rows(rows().firstRow(rank), rows().rows(rank));
    }
}
