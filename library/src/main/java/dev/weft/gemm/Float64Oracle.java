package dev.weft.gemm;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.function.LongConsumer;
import java.util.function.LongUnaryOperator;
import java.util.stream.LongStream;

/**
 * The product of A and B in float64, to check engines; it shares no code with any of them. It
 * accepts an output if {@code |c - ref| <= 2 sqrt(K) eps32 (|A| x |B|)} plus one rounding to the
 * output's type. An element may be infinite or NaN only if the inputs are, if the exact value
 * rounds to infinity, or if a partial sum can have overflowed fp32. Thread-safe; the work is spread
 * over all cores if all threads may read the matrices.
 *
 * @param b [K, N], or [N, K] if {@code transposed}
 * @param more what may be lost in other ways than by fp32 sums
 */
public record Float64Oracle(Matrix a, Matrix b, boolean transposed, Loss more) {

    /** Without any other losses. */
    public Float64Oracle(Matrix a, Matrix b, boolean transposed) {
        this(a, b, transposed, Loss.NONE);
    }

    public Float64Oracle {
        long k = transposed ? b.cols() : b.rows();
        if (a.cols() != k) {
            throw new IllegalArgumentException(
                    "A %s and B %s%s differ in K: %s and %s"
                            .formatted(
                                    a.describe(),
                                    b.describe(),
                                    transposed ? " (transposed)" : "",
                                    a.cols(),
                                    k));
        }
    }

    long n() {
        return transposed ? b.rows() : b.cols();
    }

    /** Checks all rows of {@code c} against the same rows of A. */
    public Deviation check(Matrix c) {
        requireShape(c);
        return check(c, c.rows(), index -> index);
    }

    /** Checks the rows numbered {@code rows} of {@code c} against the same rows of A. */
    public Deviation check(Matrix c, long... rows) {
        requireShape(c);
        for (long row : rows) {
            requireRows(row, 1);
        }
        return check(c, rows.length, index -> rows[(int) index]);
    }

    /** The float64 product of some rows, rounded to fp32; {@code rowsDone} hears of each strip. */
    public Matrix golden(long firstRow, long rows, Arena arena, LongConsumer rowsDone) {
        requireRows(firstRow, rows);
        Matrix target = Matrix.allocate(arena, DType.FP32, rows, n());
        boolean parallel = operandsShared() && shared(target);
        long stripRows = stripRows();
        for (long done = 0; done < rows; done += stripRows) {
            long from = done;
            long count = Math.min(stripRows, rows - done);
            tiles(count, parallel)
                    .forEach(
                            number -> {
                                Float64Tile tile = tile(number, count, i -> firstRow + from + i);
                                tile.compute(false);
                                tile.forEach(
                                        (index, col, product, magnitude) ->
                                                target.set(from + index, col, (float) product));
                            });
            rowsDone.accept(done + count);
        }
        return target;
    }

    private Deviation check(Matrix c, long rows, LongUnaryOperator rowAt) {
        return tiles(rows, operandsShared() && shared(c))
                .mapToObj(
                        number -> {
                            Float64Tile tile = tile(number, rows, rowAt);
                            tile.compute(true);
                            DeviationMeter meter = new DeviationMeter(c, a.cols(), more);
                            tile.forEach(
                                    (index, col, product, magnitude) ->
                                            meter.add(
                                                    rowAt.applyAsLong(index),
                                                    col,
                                                    product,
                                                    magnitude));
                            return meter.result();
                        })
                .reduce(Deviation.NONE, Deviation::merge);
    }

    private LongStream tiles(long rows, boolean parallel) {
        LongStream numbers = LongStream.range(0, Math.ceilDiv(rows, Float64Tile.ROWS) * colTiles());
        return parallel ? numbers.parallel() : numbers;
    }

    private Float64Tile tile(long number, long rows, LongUnaryOperator rowAt) {
        long index = number / colTiles() * Float64Tile.ROWS;
        long col = number % colTiles() * Float64Tile.COLS;
        return new Float64Tile(this, rows, rowAt, index, col);
    }

    private long colTiles() {
        return Math.ceilDiv(n(), Float64Tile.COLS);
    }

    /** Enough rows for several tiles on every core. */
    private long stripRows() {
        long wantedTiles = 4L * Runtime.getRuntime().availableProcessors();
        return Float64Tile.ROWS * Math.ceilDiv(wantedTiles, Math.max(1, colTiles()));
    }

    boolean operandsShared() {
        return shared(a) && shared(b);
    }

    /** Whether other threads may read the matrix: an arena may be confined to one thread. */
    static boolean shared(Matrix matrix) {
        return matrix.data().isAccessibleBy(new Thread());
    }

    void requireShape(Matrix c) {
        if (c.rows() != a.rows() || c.cols() != n()) {
            throw new IllegalArgumentException(
                    "C " + c.describe() + " is not the product's [" + a.rows() + ", " + n() + "]");
        }
    }

    private void requireRows(long firstRow, long rows) {
        if (firstRow < 0 || rows < 0 || firstRow > a.rows() - rows) {
            throw new IllegalArgumentException(
                    rows + " rows from row " + firstRow + " lie outside of A " + a.describe());
        }
    }
}
