package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.Fabric;
import dev.weft.gemm.Deviation;
import dev.weft.gemm.Float64Oracle;
import dev.weft.gemm.Freivalds;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.PackedB;
import dev.weft.gemm.Scratch;
import dev.weft.op.Operator;
import dev.weft.plan.GatherView;
import dev.weft.plan.GatherView.Block;
import dev.weft.plan.GatherView.Move;
import dev.weft.plan.Plan;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;

/**
 * Normal data of one group: A by rows, B by columns, on {@code ranks} ranks. Judges a rank's
 * product by float64 and by the unfused product.
 */
record FgccProblem(Matrix a, Matrix b, Shards rows, Shards cols, long seed) {

    /** Beyond this many multiply-adds a sample of rows is compared, and Freivalds judges a rank. */
    private static final double MAX_FULL_CHECK_STEPS = 0x1p27;

    private static final int SAMPLED_ROWS = 16;
    private static final int FREIVALDS_ROUNDS = 4;

    /**
     * @param m rows of A on each rank
     * @param n columns of B on all ranks together
     */
    static FgccProblem create(
            Arena arena, int ranks, long m, long k, long n, DType aType, DType bType, long seed) {
        Matrix a = Matrix.allocate(arena, aType, m * ranks, k);
        Matrix b = Matrix.allocate(arena, bType, k, n);
        fill(new NormalData(seed, 0), a);
        fill(new NormalData(seed, 1), b);
        return new FgccProblem(a, b, Shards.even(m * ranks, ranks), Shards.even(n, ranks), seed);
    }

    private static void fill(NormalData data, Matrix matrix) {
        LongStream.range(0, matrix.rows())
                .parallel()
                .forEach(row -> data.fill(matrix.rows(row, 1), row, 0, matrix.cols()));
    }

    Matrix lhs(int rank) {
        return a.rows(rows.firstRow(rank), rows.rows(rank));
    }

    Matrix rhs(int rank) {
        return b.block(0, b.rows(), cols.firstRow(rank), cols.rows(rank));
    }

    /** The call of one rank, with all ranks in one group. */
    FgccResult<Matrix> call(Fabric fabric, boolean forceHbm, FgccConfig config) {
        int rank = fabric.rank();
        int ranks = rows.ranks();
        return Fgcc.allgatherComputeMatmul(
                fabric, lhs(rank), rhs(rank), ranks, 1, forceHbm, config);
    }

    /** What an operator does on its rank. */
    static GatherView plan(Operator<?> operator) {
        Plan plan = operator.plan();
        return new GatherView(plan.steps().get(operator.rank()), plan.chunks());
    }

    /** The transfers of a plan that has one lane. */
    static List<Move> transfers(GatherView plan) {
        assertEquals(1, plan.lanes().size());
        return plan.lanes().getFirst().moves();
    }

    /** In the order in which they are multiplied. */
    static List<Integer> sources(GatherView plan) {
        return plan.consumption().stream().map(Block::source).distinct().toList();
    }

    /** Bit for bit the product of one thread; of a large one the sampled rows. */
    void assertBitwise(Matrix product, int rank) {
        try (Arena arena = Arena.ofConfined()) {
            Gemm gemm = Gemms.auto(a.dtype(), b.dtype());
            PackedB packed = gemm.pack(rhs(rank), false, arena);
            DType out = DType.promote(a.dtype(), b.dtype());
            Matrix unfused = Matrix.allocate(arena, out, a.rows(), packed.n());
            assertEquals(unfused.describe(), product.describe(), what(rank));
            Scratch scratch = gemm.scratch(a.cols(), packed.n(), arena);
            if (isSmall(product)) {
                gemm.multiply(a, 0, a.rows(), packed, unfused, 0, scratch);
                assertEquals(-1, unfused.firstDifferentRow(product), what(rank));
                return;
            }
            for (long row : sample(product.rows())) {
                gemm.multiply(a, row, 1, packed, unfused, row, scratch);
                Matrix expected = unfused.rows(row, 1);
                assertTrue(
                        expected.bitwiseEquals(product.rows(row, 1)), what(rank) + " row " + row);
            }
        }
    }

    private boolean isSmall(Matrix product) {
        return (double) a.rows() * a.cols() * product.cols() <= MAX_FULL_CHECK_STEPS;
    }

    /**
     * The source's tolerance, and Weft's own bound: on every row, or on a sample; then all rows of
     * the last rank are left to Freivalds.
     */
    void assertClose(Matrix product, int rank) {
        Float64Oracle oracle = new Float64Oracle(a, rhs(rank), false);
        boolean whole = isSmall(product);
        Deviation deviation =
                whole ? oracle.check(product) : oracle.check(product, sample(product.rows()));
        double tolerance = 1e-2 + 1e-2 * deviation.maxAbsExpected();
        assertTrue(deviation.maxAbsErr() <= tolerance, what(rank) + ": " + deviation.describe());
        assertTrue(deviation.withinBound(), what(rank) + ": " + deviation.describe());
        if (!whole && rank == rows.ranks() - 1) {
            Freivalds.Result all =
                    Freivalds.check(
                            new Float64Oracle(a, rhs(rank), false),
                            product,
                            FREIVALDS_ROUNDS,
                            seed);
            assertTrue(all.accepted(), what(rank) + ": " + all);
        }
    }

    private long[] sample(long count) {
        LongStream edges = LongStream.of(0, rows.rows(0) - 1, rows.rows(0), count - 1);
        return LongStream.concat(edges, new Random(seed).longs(SAMPLED_ROWS, 0, count))
                .distinct()
                .toArray();
    }

    private String what(int rank) {
        return "rank %d of %d, A %s, B %s, seed %d"
                .formatted(rank, rows.ranks(), a.describe(), b.describe(), seed);
    }
}
