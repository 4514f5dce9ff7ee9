package dev.weft.cli.verify;

import dev.weft.cli.options.ProblemSpec;
import dev.weft.gemm.Deviation;
import dev.weft.gemm.Float64Oracle;
import dev.weft.gemm.Freivalds;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Loss;
import dev.weft.gemm.PackedB;
import dev.weft.gemm.Scratch;
import dev.weft.plan.Shards;
import dev.weft.plan.step.SumOrder;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * Checks a product of all rows against float64: every row if that is affordable, otherwise sampled
 * rows, all rows with infinities or NaNs, and Freivalds' check of the rest. Thread-safe.
 */
public record ProductJudge(Shards shards, boolean transposeB, long seed) {

    /** Up to this many multiply-adds, every row is compared with its bound, otherwise a sample. */
    private static final double MAX_FULL_CHECK_STEPS = 0x1p30;

    /**
     * The share of {@code |A| x |B|} that the tensor cores' sums of 8-bit products may lose: they
     * keep about 13 bits of the largest addend. With normal data, 2^-15 was lost at a K of 4096;
     * the loss falls with the root of K.
     */
    public static final Loss LOST_BY_FP8_SUMS = Loss.ofShare(0x1p-11);

    private static final int SAMPLED_ROWS = 64;
    private static final int FREIVALDS_ROUNDS = 8;

    /** For products of the rank's group. */
    public ProductJudge(ProblemSpec problem, int worldRank) {
        this(problem.shards(worldRank), problem.transposeB(), problem.seed());
    }

    /**
     * @param checkedRows rows that were compared element by element
     * @param freivalds whether Freivalds' check accepts the rest; true if there is none
     */
    public record Judgement(Deviation deviation, long checkedRows, boolean freivalds) {

        public boolean withinBound() {
            return deviation.withinBound() && freivalds;
        }
    }

    /**
     * @param a all rows of one group
     */
    public Judgement judge(Matrix a, Matrix b, Matrix c) {
        return judge(a, b, c, Loss.NONE);
    }

    /**
     * @param more what may be lost in other ways than by fp32 sums
     */
    public Judgement judge(Matrix a, Matrix b, Matrix c, Loss more) {
        Float64Oracle oracle = new Float64Oracle(a, b, transposeB, more);
        if ((double) c.rows() * a.cols() * c.cols() <= MAX_FULL_CHECK_STEPS) {
            return new Judgement(oracle.check(c), c.rows(), true);
        }
        // Random signs say nothing about infinities and NaNs: these rows are compared.
        long[] notFinite = rowsNotFinite(c);
        long[] rows =
                LongStream.concat(sampledRows(c.rows()), LongStream.of(notFinite))
                        .distinct()
                        .sorted()
                        .toArray();
        boolean accepted =
                Freivalds.check(
                                oracle,
                                c,
                                FREIVALDS_ROUNDS,
                                seed,
                                row -> Arrays.binarySearch(notFinite, row) < 0)
                        .accepted();
        return new Judgement(oracle.check(c, rows), rows.length, accepted);
    }

    /** In order. */
    private static long[] rowsNotFinite(Matrix c) {
        return LongStream.range(0, c.rows())
                .filter(
                        row ->
                                LongStream.range(0, c.cols())
                                        .anyMatch(col -> !Float.isFinite(c.get(row, col))))
                .toArray();
    }

    /** The first and the last row of every shard, and random ones; a fixed seed repeats them. */
    private LongStream sampledRows(long rows) {
        Random random = new Random(seed);
        LongStream edges =
                IntStream.range(0, shards.ranks())
                        .filter(member -> shards.rows(member) > 0)
                        .mapToLong(shards::firstRow)
                        .flatMap(row -> LongStream.of(row, Math.max(0, row - 1)))
                        // C may be only one rank's rows.
                        .filter(row -> row < rows);
        return LongStream.concat(
                LongStream.concat(edges, LongStream.of(rows - 1)),
                random.longs(SAMPLED_ROWS, 0, rows));
    }

    /** Some rows of B, which an engine packs. */
    interface Rhs {
        PackedB pack(Gemm gemm, long from, long end, Arena arena);
    }

    Rhs of(Matrix b) {
        return (gemm, from, end, arena) ->
                gemm.pack(
                        transposeB
                                ? b.block(0, b.rows(), from, end - from)
                                : b.rows(from, end - from),
                        transposeB,
                        arena);
    }

    /** Sums rows in an order, in fp32, by one thread. */
    Matrix summed(Gemm gemm, Matrix a, Rhs b, SumOrder order, Arena arena) {
        return OrderedSums.in(
                order,
                (before, first, end) -> {
                    boolean continues = before != null;
                    PackedB packed = b.pack(gemm, first, end, arena);
                    long n = packed.n();
                    Matrix sums =
                            continues ? before : Matrix.allocate(arena, DType.FP32, a.rows(), n);
                    Matrix columns = a.block(0, a.rows(), first, end - first);
                    Scratch scratch = gemm.scratch(end - first, n, arena);
                    gemm.multiply(columns, 0, a.rows(), packed, 0, n, continues, sums, 0, scratch);
                    return sums;
                },
                arena);
    }

    /** The product of all rows at once, by one thread. */
    public Matrix unfused(Gemm gemm, Matrix a, Matrix b, DType outType, Arena arena) {
        return unfused(gemm, a, of(b), outType, arena);
    }

    Matrix unfused(Gemm gemm, Matrix a, Rhs b, DType outType, Arena arena) {
        PackedB packed = b.pack(gemm, 0, a.cols(), arena);
        Matrix c = Matrix.allocate(arena, outType, a.rows(), packed.n());
        gemm.multiply(a, 0, a.rows(), packed, c, 0, gemm.scratch(a.cols(), packed.n(), arena));
        return c;
    }
}
