package dev.weft.bench.measure;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.stream.LongStream;

/**
 * Numbers in [-0.5, 0.5) that programs in other languages can make alike: from the index of an
 * element by 32-bit arithmetic alone, a multiple of 2^-16 each. And the sum by which products of
 * them are compared across processes. Any thread may call it.
 */
public final class MadeUpData {

    public static final int A = 1;
    public static final int B = 2;
    public static final int ROW_WEIGHTS = 3;
    public static final int COL_WEIGHTS = 4;
    public static final int RESIDUAL = 5;
    public static final int NORM_WEIGHTS = 6;
    public static final int ROUTES = 7;
    public static final int ROUTE_WEIGHTS = 8;

    /** The first of the matrices of experts, three for each. */
    public static final int EXPERTS_BS = 16;

    private static final double EPS32 = 0x1p-24;

    private MadeUpData() {}

    /** Number {@code index} of the sequence {@code salt}; the same as in the C and Python peers. */
    public static float value(int salt, long index) {
        int h = (int) index * 0x9E3779B1 + salt * 0x85EBCA77;
        h ^= h >>> 15;
        h *= 0x2C1B3C6D;
        h ^= h >>> 12;
        h *= 0x297A2D39;
        h ^= h >>> 15;
        return (h >>> 16) * 0x1p-16f - 0.5f;
    }

    /** Fills a matrix, row after row; the numbers are rounded to its type. */
    public static void fill(Matrix matrix, int salt) {
        fill(matrix, salt, 0);
    }

    /** The same for a part of a matrix, which begins with its row {@code firstRow}. */
    public static void fill(Matrix part, int salt, long firstRow) {
        for (long row = 0; row < part.rows(); row++) {
            for (long col = 0; col < part.cols(); col++) {
                part.set(row, col, value(salt, (firstRow + row) * part.cols() + col));
            }
        }
    }

    /** The sum of all {@code c[i][j] * w[i] * v[j]}, in float64. */
    public static double checksum(Matrix c) {
        return checksum(c, 0);
    }

    /** The same of a part of C, which begins with its row {@code firstRow}. */
    public static double checksum(Matrix c, long firstRow) {
        return LongStream.range(0, c.rows())
                .mapToDouble(
                        row -> {
                            double sum = 0;
                            for (long col = 0; col < c.cols(); col++) {
                                sum += (double) c.get(row, col) * value(COL_WEIGHTS, col);
                            }
                            return sum * value(ROW_WEIGHTS, firstRow + row);
                        })
                .sum();
    }

    /**
     * How far the sums of two right products may lie apart. Rounding errors are independent. Those
     * of fp32 are a hundred times smaller, and one element that is another's moves the sum by more.
     * A product rounded to bf16 has its sum fifteen times nearer.
     */
    public static double tolerance(Shape shape, DType type) {
        double elements = (double) shape.m() * shape.n();
        return type == DType.FP32
                ? EPS32 * shape.k() * Math.sqrt(elements)
                : 0x1p-14 * Math.sqrt(elements * shape.k());
    }

    /** Ends the bench where the sums say that one of the products is wrong. */
    public static void requireSame(String who, Shape shape, DType type, double weft, double peer) {
        // Not "> tolerance": a NaN must count as wrong.
        if (!(Math.abs(weft - peer) <= tolerance(shape, type))) {
            throw new IllegalStateException(
                    "%s and Weft differ at %s: weighted sums of the product %s and %s, expected within %s"
                            .formatted(who, shape, peer, weft, tolerance(shape, type)));
        }
    }
}
