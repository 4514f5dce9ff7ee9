package dev.weft.cli.verify;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;

/**
 * The Ascend example's rule: an element is bad if it differs from golden by more than 1e-3, both
 * absolutely and relatively; more than 0.1% bad elements, or more than 1000 zeros where golden has
 * none, fail.
 *
 * <p>Two things are added, so that the rule checks the product and not the type or the size that
 * the user chose. Golden is first rounded to the output's type, and one unit of it is no error: a
 * sum near the middle of two values may be rounded either way. And above a K of 4096 the absolute
 * limit grows with K, as errors of fp32 sums do: on an H200 0.2% of the sums of 16384 standard
 * normal products were off by more than 1e-3 both ways.
 */
record SeedRule(long bad, long zeros, long elements) {

    private static final double TOLERANCE = 1e-3;
    private static final double LONG_K = 4096;
    private static final double BAD_SHARE = 1e-3;
    private static final long MAX_ZEROS = 1000;

    /**
     * @param k the K of the product
     */
    static SeedRule judge(Matrix golden, Matrix output, long k) {
        DType type = output.dtype();
        double absolute = TOLERANCE * Math.max(1, k / LONG_K);
        double relative = Math.max(TOLERANCE, type.epsilon());
        long bad = 0;
        long zeros = 0;
        for (long row = 0; row < output.rows(); row++) {
            for (long col = 0; col < output.cols(); col++) {
                float expected = type.round(golden.get(row, col));
                float actual = output.get(row, col);
                double difference = Math.abs((double) actual - expected);
                // The relative tolerance of an infinity would let everything pass.
                boolean close =
                        Float.compare(actual, expected) == 0
                                || difference <= absolute
                                || Float.isFinite(expected)
                                        && difference <= relative * Math.abs(expected);
                bad += close ? 0 : 1;
                zeros += actual == 0 && expected != 0 ? 1 : 0;
            }
        }
        return new SeedRule(bad, zeros, output.rows() * output.cols());
    }

    boolean passed() {
        return bad <= BAD_SHARE * elements && zeros <= MAX_ZEROS;
    }
}
