package dev.weft.gemm;

import dev.weft.tensor.Matrix;
import java.util.Arrays;
import java.util.function.LongUnaryOperator;

/** A tile of the float64 product and of the magnitudes' product, over all of K. For one thread. */
final class Float64Tile {

    /** Rows of a full tile. */
    static final int ROWS = 64;

    /** Columns of a full tile: many, since short loops hardly reach their vectorized part. */
    static final int COLS = 512;

    /** Rows of B at a time: with the tile's columns, they stay in the L1 cache. */
    private static final int DEPTH = 8;

    /** Divides {@link #DEPTH}. The compiler does not vectorize more at once. */
    private static final int UNROLL = 4;

    /** Receives each element; {@code index} counts rows in the caller's order. */
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
    private final double[] aRows;
    private final double[][] bRows;
    private final double[][] products;
    private final double[][] magnitudes;

    Float64Tile(
            Float64Oracle product,
            long allRows,
            LongUnaryOperator rowAt,
            long firstIndex,
            long firstCol) {
        this.a = product.a();
        this.b = product.b();
        this.transposed = product.transposed();
        this.rowAt = rowAt;
        this.firstIndex = firstIndex;
        this.firstCol = firstCol;
        this.rows = (int) Math.min(ROWS, allRows - firstIndex);
        this.cols = (int) Math.min(COLS, product.n() - firstCol);
        this.aRows = new double[rows * DEPTH];
        this.bRows = new double[DEPTH][cols];
        this.products = new double[rows][cols];
        this.magnitudes = new double[rows][cols];
    }

    void compute(boolean withMagnitudes) {
        for (long k = 0; k < a.cols(); k += DEPTH) {
            int depth = (int) Math.min(DEPTH, a.cols() - k);
            load(k, depth);
            addProducts(depth, products);
            if (withMagnitudes) {
                Arrays.setAll(aRows, i -> Math.abs(aRows[i]));
                for (double[] row : bRows) {
                    Arrays.setAll(row, i -> Math.abs(row[i]));
                }
                addProducts(depth, magnitudes);
            }
        }
    }

    void forEach(Visitor visitor) {
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < cols; j++) {
                visitor.accept(firstIndex + i, firstCol + j, products[i][j], magnitudes[i][j]);
            }
        }
    }

    /** Loads zeros beyond the last row of B. */
    private void load(long k, int depth) {
        if (depth < DEPTH) {
            Arrays.fill(aRows, 0);
            for (double[] row : bRows) {
                Arrays.fill(row, 0);
            }
        }
        for (int i = 0; i < rows; i++) {
            long row = rowAt.applyAsLong(firstIndex + i);
            for (int d = 0; d < depth; d++) {
                aRows[i * DEPTH + d] = a.get(row, k + d);
            }
        }
        for (int d = 0; d < depth; d++) {
            double[] bRow = bRows[d];
            for (int j = 0; j < cols; j++) {
                bRow[j] = transposed ? b.get(firstCol + j, k + d) : b.get(k + d, firstCol + j);
            }
        }
    }

    private void addProducts(int depth, double[][] sums) {
        for (int i = 0; i < rows; i++) {
            for (int d = 0; d < depth; d += UNROLL) {
                addRows(aRows, i * DEPTH + d, bRows, d, sums[i]);
            }
        }
    }

    /**
     * Adds four rows of B to a row of sums. They are separate arrays with one common index, so the
     * compiler sees that they do not overlap and vectorizes the loop.
     */
    private static void addRows(double[] a, int at, double[][] b, int first, double[] sums) {
        addRows(
                a[at],
                b[first],
                a[at + 1],
                b[first + 1],
                a[at + 2],
                b[first + 2],
                a[at + 3],
                b[first + 3],
                sums);
    }

    private static void addRows(
            double a0,
            double[] b0,
            double a1,
            double[] b1,
            double a2,
            double[] b2,
            double a3,
            double[] b3,
            double[] sums) {
        for (int j = 0; j < sums.length; j++) {
            double sum = Math.fma(a1, b1[j], Math.fma(a0, b0[j], sums[j]));
            sums[j] = Math.fma(a3, b3[j], Math.fma(a2, b2[j], sum));
        }
    }
}
