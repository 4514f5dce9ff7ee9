package dev.weft.gemm;

import dev.weft.tensor.Matrix;
import java.util.function.LongPredicate;
import java.util.stream.LongStream;

/**
 * Checks {@code C ~ A x B} without computing the product: for random signs x, {@code C x} must be
 * {@code A (B x)}, which costs as much as reading the three matrices. Float64 throughout. For
 * finite matrices; any infinity or NaN is reported as wrong. Thread-safe.
 *
 * <p>Tolerance. Let {@code e_j} be the errors of one row of C. A correct product has {@code |e_j|
 * <= beta_j = 2 sqrt(K) eps32 (|A| x |B|)_j + rounding_j}. The signs are independent of C, so by
 * Hoeffding {@code |sum x_j e_j| > t |beta|} happens with a probability of at most {@code 2
 * exp(-t^2 / 2)}, where {@code |.|} is the Euclidean norm. {@code t} is chosen such that, over all
 * rows and rounds, a correct product is refused once in a thousand million checks. By
 * Cauchy-Schwarz {@code (|A| x |B|)_j <= |a| |b_j|} for a row a of A and the columns of B, so
 * {@code |beta| <= 2 sqrt(K) eps32 |a| |B|_F + |rounding|}, which needs no product. The float64
 * sums themselves may be off by {@code (N + K) 2^-53 sqrt(N) |a| |B|_F}, which is added.
 *
 * <p>So one wrong element is found in every round if its error is over twice the row's tolerance
 * (about {@code 12 sqrt(N)} times its own bound). Several large errors in a row cancel by chance in
 * at most every second round.
 */
public final class Freivalds {

    private static final double FALSE_ALARMS = 1e-9;
    private static final double EPS64 = 0x1p-53;
    private static final int K_BLOCK = 1024;

    /**
     * @param worstRatio the largest difference as a share of its tolerance; up to 1 is correct
     * @param worstRow its row; -1 if C has no elements
     * @param tolerance the tolerance of that row
     */
    public record Result(double worstRatio, long worstRow, double tolerance) {

        public boolean accepted() {
            return worstRatio <= 1;
        }

        private Result worse(Result other) {
            if (worstRatio != other.worstRatio) {
                return worstRatio > other.worstRatio ? this : other;
            }
            return worstRow >= 0 && (other.worstRow < 0 || worstRow < other.worstRow)
                    ? this
                    : other;
        }
    }

    private static final Result NOTHING = new Result(0, -1, 0);

    private final Matrix a;
    private final Float64Oracle product;
    private final Matrix c;
    private final long n;
    private final long seed;
    private final double[][] signedB;
    private final double deviations;

    private Freivalds(Float64Oracle product, Matrix c, int rounds, long seed) {
        this.a = product.a();
        this.product = product;
        this.c = c;
        this.n = c.cols();
        this.seed = seed;
        this.signedB = new double[rounds][Math.toIntExact(a.cols())];
        double checks = (double) rounds * Math.max(1, c.rows());
        this.deviations = Math.sqrt(2 * Math.log(2 * checks / FALSE_ALARMS));
    }

    /** Checks all rows of C. */
    public static Result check(Float64Oracle product, Matrix c, int rounds, long seed) {
        return check(product, c, rounds, seed, row -> true);
    }

    /**
     * Checks some rows of C. The oracle itself can check the others, such as those with an infinity
     * or NaN.
     *
     * @param product of the matrices whose product C should be, with what it may lose
     * @param rounds independent sign vectors, 1 to 64
     * @param wanted whether to check the row of that number
     */
    public static Result check(
            Float64Oracle product, Matrix c, int rounds, long seed, LongPredicate wanted) {
        product.requireShape(c);
        if (rounds < 1 || rounds > Long.SIZE) {
            throw new IllegalArgumentException(
                    "%s rounds: expected 1 to %s".formatted(rounds, Long.SIZE));
        }
        return c.cols() == 0 ? NOTHING : new Freivalds(product, c, rounds, seed).check(wanted);
    }

    private Result check(LongPredicate wanted) {
        long blocks = Math.ceilDiv(a.cols(), K_BLOCK);
        double normB = Math.sqrt(range(blocks).mapToDouble(this::signB).sum());
        return range(c.rows())
                .filter(wanted)
                .mapToObj(row -> checkRow(row, normB))
                .reduce(NOTHING, Result::worse);
    }

    /** Sums a block of rows of B with every round's signs; returns its sum of squares. */
    private double signB(long block) {
        int from = (int) (block * K_BLOCK);
        int to = (int) Math.min(a.cols(), from + (long) K_BLOCK);
        double squares = 0;
        Matrix b = product.b();
        if (product.transposed()) {
            for (long col = 0; col < n; col++) {
                long signs = signs(col);
                for (int k = from; k < to; k++) {
                    squares += addSigned(k, b.get(col, k), signs);
                }
            }
        } else {
            for (int k = from; k < to; k++) {
                for (long col = 0; col < n; col++) {
                    squares += addSigned(k, b.get(k, col), signs(col));
                }
            }
        }
        return squares;
    }

    private double addSigned(int k, double value, long signs) {
        for (int round = 0; round < signedB.length; round++) {
            signedB[round][k] += signed(value, signs, round);
        }
        return value * value;
    }

    private Result checkRow(long row, double normB) {
        double[] differences = new double[signedB.length];
        double squaresA = 0;
        for (int k = 0; k < a.cols(); k++) {
            double value = a.get(row, k);
            squaresA += value * value;
            for (int round = 0; round < differences.length; round++) {
                differences[round] -= value * signedB[round][k];
            }
        }
        double squaresRounding = 0;
        for (long col = 0; col < n; col++) {
            double value = c.get(row, col);
            double rounding = ErrorBound.rounding(c.dtype(), Math.abs(value));
            squaresRounding += rounding * rounding;
            long signs = signs(col);
            for (int round = 0; round < differences.length; round++) {
                differences[round] += signed(value, signs, round);
            }
        }
        double norms = Math.sqrt(squaresA) * normB;
        double tolerance = tolerance(norms, Math.sqrt(squaresRounding));
        double worst = 0;
        for (double difference : differences) {
            // Not just Math.max: a NaN must count as wrong, and 0 of 0 as correct.
            double ratio = difference == 0 ? 0 : Math.abs(difference) / tolerance;
            worst = Double.isNaN(ratio) ? Double.POSITIVE_INFINITY : Math.max(worst, ratio);
        }
        return new Result(worst, row, tolerance);
    }

    private double tolerance(double norms, double rounding) {
        double chain = (ErrorBound.relative(a.cols()) + product.more().share()) * norms;
        double underflow = (ErrorBound.underflow(a.cols()) + product.more().least()) * Math.sqrt(n);
        double float64 = (n + a.cols()) * EPS64 * Math.sqrt(n) * norms;
        return deviations * (chain + underflow + rounding) + float64;
    }

    /** Flips the sign bit: a branch on random signs would often be mispredicted. */
    private static double signed(double value, long signs, int round) {
        return Double.longBitsToDouble(
                Double.doubleToRawLongBits(value) ^ (signs >>> round << (Long.SIZE - 1)));
    }

    /** One bit per round for a column: a mixed counter, so that signs need no memory. */
    private long signs(long col) {
        long z = seed + (col + 1) * 0x9E3779B97F4A7C15L;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }

    private LongStream range(long count) {
        boolean shared = product.operandsShared() && Float64Oracle.shared(c);
        LongStream numbers = LongStream.range(0, count);
        return shared ? numbers.parallel() : numbers;
    }
}
