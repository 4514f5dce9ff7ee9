package dev.weft.bench.measure;

import dev.weft.gemm.Deviation;
import dev.weft.gemm.Float64Oracle;
import dev.weft.gemm.Freivalds;
import dev.weft.tensor.Matrix;
import java.util.stream.LongStream;

/** Ends the bench where a product is wrong: a time of a wrong answer is worth nothing. */
public final class ProductCheck {

    /** Up to this many multiply-adds every row is compared, otherwise a sample and Freivalds. */
    private static final double MAX_FULL_CHECK_STEPS = 0x1p26;

    private static final int SAMPLED_ROWS = 16;
    private static final int FREIVALDS_ROUNDS = 4;
    private static final long SEED = 1;

    private ProductCheck() {}

    public static void require(String who, Matrix a, Matrix b, Matrix c) {
        boolean whole = (double) a.rows() * a.cols() * b.cols() <= MAX_FULL_CHECK_STEPS;
        Float64Oracle oracle = new Float64Oracle(a, b, false);
        Deviation deviation = whole ? oracle.check(c) : oracle.check(c, sample(c.rows()));
        if (!deviation.withinBound()) {
            throw new IllegalStateException(
                    "wrong product of " + who + ": " + deviation.describe());
        }
        if (!whole && !Freivalds.check(oracle, c, FREIVALDS_ROUNDS, SEED).accepted()) {
            throw new IllegalStateException(
                    "wrong product of " + who + ": some row fails Freivalds' check");
        }
    }

    /** Some rows, evenly spread, with the first and the last one. */
    public static long[] sample(long rows) {
        return LongStream.range(0, SAMPLED_ROWS)
                .map(i -> i * (rows - 1) / (SAMPLED_ROWS - 1))
                .distinct()
                .toArray();
    }
}
