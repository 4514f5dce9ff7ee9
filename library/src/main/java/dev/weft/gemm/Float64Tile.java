package dev.weft.gemm;

import dev.weft.tensor.Matrix;
import java.util.Arrays;
import java.util.function.LongUnaryOperator;

/** A tile of the float64 product and of that of magnitudes, over all of K. For one thread. */
final class Float64Tile {

    /** Rows and columns of a full tile; a multiple of {@link #UNROLL}. */
    static final int SIZE = 64;

    private static final int DEPTH = 1024;
    private static final int UNROLL = 4;

    /** Receives each element; {@code index} counts rows in the order of the caller. */
    interface Visitor {
        void accept(long index, long col, double product, double magnitude);
    }

    private final Matrix a;
    private final Matrix b;
    private final boolean transposed;
    private final LongUnaryOperator rowAt;
    private final long firstIndex;
    private final long firstCol;
    private final int rows;
    private final int cols;
    private final double[] aRows = new double[SIZE * DEPTH];
    private final double[] bCols = new double[SIZE * DEPTH];
    private final double[] products = new double[SIZE * SIZE];
    private final double[] magnitudes = new double[SIZE * SIZE];

    Float64Tile(
            Matrix a,
            Matrix b,
            boolean transposed,
            long allRows,
            LongUnaryOperator rowAt,
            long firstIndex,
            long allCols,
            long firstCol) {
        this.a = a;
        this.b = b;
        this.transposed = transposed;
        this.rowAt = rowAt;
        this.firstIndex = firstIndex;
        this.firstCol = firstCol;
        this.rows = (int) Math.min(SIZE, allRows - firstIndex);
        this.cols = (int) Math.min(SIZE, allCols - firstCol);
    }

    void compute(boolean withMagnitudes) {
        for (long k = 0; k < a.cols(); k += DEPTH) {
            int depth = (int) Math.min(DEPTH, a.cols() - k);
            load(k, depth);
            addProducts(depth, products);
            if (withMagnitudes) {
                Arrays.setAll(aRows, i -> Math.abs(aRows[i]));
                Arrays.setAll(bCols, i -> Math.abs(bCols[i]));
                addProducts(depth, magnitudes);
            }
        }
    }

    void forEach(Visitor visitor) {
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < cols; j++) {
                int at = i * SIZE + j;
                visitor.accept(firstIndex + i, firstCol + j, products[at], magnitudes[at]);
            }
        }
    }

    private void load(long k, int depth) {
        for (int i = 0; i < rows; i++) {
            long row = rowAt.applyAsLong(firstIndex + i);
            for (int d = 0; d < depth; d++) {
                aRows[i * DEPTH + d] = a.get(row, k + d);
            }
        }
        if (transposed) {
            for (int j = 0; j < cols; j++) {
                for (int d = 0; d < depth; d++) {
                    bCols[j * DEPTH + d] = b.get(firstCol + j, k + d);
                }
            }
        } else {
            for (int d = 0; d < depth; d++) {
                for (int j = 0; j < cols; j++) {
                    bCols[j * DEPTH + d] = b.get(k + d, firstCol + j);
                }
            }
        }
    }

    private void addProducts(int depth, double[] sums) {
        for (int i = 0; i < rows; i += UNROLL) {
            for (int j = 0; j < cols; j += UNROLL) {
                addSquare(aRows, i * DEPTH, bCols, j * DEPTH, depth, sums, i * SIZE + j);
            }
        }
    }

    /** Four rows times four columns, 16 sums in registers. */
    private static void addSquare(
            double[] a, int aFrom, double[] b, int bFrom, int depth, double[] sums, int at) {
        double s00 = 0, s01 = 0, s02 = 0, s03 = 0;
        double s10 = 0, s11 = 0, s12 = 0, s13 = 0;
        double s20 = 0, s21 = 0, s22 = 0, s23 = 0;
        double s30 = 0, s31 = 0, s32 = 0, s33 = 0;
        for (int d = 0; d < depth; d++) {
            double a0 = a[aFrom + d];
            double a1 = a[aFrom + DEPTH + d];
            double a2 = a[aFrom + 2 * DEPTH + d];
            double a3 = a[aFrom + 3 * DEPTH + d];
            double b0 = b[bFrom + d];
            double b1 = b[bFrom + DEPTH + d];
            double b2 = b[bFrom + 2 * DEPTH + d];
            double b3 = b[bFrom + 3 * DEPTH + d];
            s00 = Math.fma(a0, b0, s00);
            s01 = Math.fma(a0, b1, s01);
            s02 = Math.fma(a0, b2, s02);
            s03 = Math.fma(a0, b3, s03);
            s10 = Math.fma(a1, b0, s10);
            s11 = Math.fma(a1, b1, s11);
            s12 = Math.fma(a1, b2, s12);
            s13 = Math.fma(a1, b3, s13);
            s20 = Math.fma(a2, b0, s20);
            s21 = Math.fma(a2, b1, s21);
            s22 = Math.fma(a2, b2, s22);
            s23 = Math.fma(a2, b3, s23);
            s30 = Math.fma(a3, b0, s30);
            s31 = Math.fma(a3, b1, s31);
            s32 = Math.fma(a3, b2, s32);
            s33 = Math.fma(a3, b3, s33);
        }
        addRow(sums, at, s00, s01, s02, s03);
        addRow(sums, at + SIZE, s10, s11, s12, s13);
        addRow(sums, at + 2 * SIZE, s20, s21, s22, s23);
        addRow(sums, at + 3 * SIZE, s30, s31, s32, s33);
    }

    private static void addRow(double[] sums, int at, double s0, double s1, double s2, double s3) {
        sums[at] += s0;
        sums[at + 1] += s1;
        sums[at + 2] += s2;
        sums[at + 3] += s3;
    }
}
