package dev.weft.tensor;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Locale;
import java.util.Objects;
import java.util.stream.Collectors;

/**
 * A matrix of 8-bit elements with their scales: the value of element (r, c) is {@code values(r, c)
 * x scales(r / scaleRows, c / scaleCols)}, rounded once to fp32. Like {@link Matrix}, it owns no
 * memory.
 *
 * <p>Rows of A travel with their scales in front, so that both arrive in one chunk with one flag:
 *
 * <pre>
 * 0                     scales, fp32: one for the whole row, or one for each 128 columns
 * {@link #valuesAt}   K elements
 *                       nothing, up to a multiple of 16 bytes
 * </pre>
 *
 * For the plan and the transfers, such an A is a matrix of bytes with {@link #rowBytes} columns.
 *
 * @param values e4m3 or e5m2
 * @param scales fp32
 * @param scaleRows rows that share a scale
 * @param scaleCols columns that share a scale
 */
public record ScaledMatrix(Matrix values, Matrix scales, long scaleRows, long scaleCols) {

    private static final long ALIGNMENT_BYTES = 16;

    /** Which elements of an 8-bit matrix share a scale. */
    public enum Scaling {
        /** All elements. */
        TENSOR,
        /** The elements of a row of A, or of a column of B. */
        ROW,
        /** {@value #BLOCK_SIZE} neighbours in a row of A; squares of that size in B. */
        BLOCK;

        static final int BLOCK_SIZE = 128;

        /** The name on the command line: {@code tensor}, {@code row}, {@code block}. */
        public String label() {
            return name().toLowerCase(Locale.ROOT);
        }

        /** The inverse of {@link #label()}. */
        public static Scaling of(String label) {
            for (Scaling scaling : values()) {
                if (scaling.label().equals(label)) {
                    return scaling;
                }
            }
            throw new IllegalArgumentException(
                    "unknown scales '%s': expected %s"
                            .formatted(
                                    label,
                                    Arrays.stream(values())
                                            .map(Scaling::label)
                                            .collect(Collectors.joining(", "))));
        }

        /** The number of scales of a row of A as it travels. */
        long scalesOfRow(long k) {
            return this == BLOCK ? Math.ceilDiv(k, BLOCK_SIZE) : 1;
        }

        /** Columns of A that share a scale. */
        long colsOfScale(long k) {
            return this == BLOCK ? BLOCK_SIZE : Math.max(1, k);
        }
    }

    public ScaledMatrix {
        Objects.requireNonNull(values, "values");
        Objects.requireNonNull(scales, "scales");
        if (!values.dtype().isScaled() || scales.dtype() != DType.FP32) {
            throw new IllegalArgumentException(
                    "values %s with scales %s: expected e4m3 or e5m2 with fp32"
                            .formatted(values.describe(), scales.describe()));
        }
        if (scaleRows < 1
                || scaleCols < 1
                || scales.rows() != Math.ceilDiv(values.rows(), scaleRows)
                || scales.cols() != Math.ceilDiv(values.cols(), scaleCols)) {
            throw new IllegalArgumentException(
                    "values %s with scales %s, one for %s x %s elements: expected [%s, %s]"
                            .formatted(
                                    values.describe(),
                                    scales.describe(),
                                    scaleRows,
                                    scaleCols,
                                    scaleRows < 1 ? "?" : Math.ceilDiv(values.rows(), scaleRows),
                                    scaleCols < 1 ? "?" : Math.ceilDiv(values.cols(), scaleCols)));
        }
    }

    /** Bytes of a row of A as it travels: the number of columns of its matrix. */
    public static long rowBytes(long k, Scaling scaling) {
        return roundUp(valuesAt(k, scaling) + k);
    }

    /** Where the elements begin in such a row. */
    public static long valuesAt(long k, Scaling scaling) {
        return roundUp(scaling.scalesOfRow(k) * Float.BYTES);
    }

    private static long roundUp(long bytes) {
        return Math.ceilDiv(bytes, ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
    }

    /** A view of the elements and scales in rows that travel. */
    public static ScaledMatrix inRows(Matrix rows, long k, Scaling scaling) {
        long scalesOfRow = scaling.scalesOfRow(k);
        Matrix scales =
                new Matrix(
                        rows.data(),
                        DType.FP32,
                        rows.rows(),
                        scalesOfRow,
                        rows.rowPitch() / Float.BYTES);
        Matrix values = rows.block(0, rows.rows(), valuesAt(k, scaling), k);
        return new ScaledMatrix(values, scales, 1, scaling.colsOfScale(k));
    }

    /** Quantizes an A, with new scales, into rows that travel. */
    public static Matrix rowsOf(Arena arena, Matrix a, DType dtype, Scaling scaling) {
        Matrix rows = Matrix.allocate(arena, dtype, a.rows(), rowBytes(a.cols(), scaling));
        ScaledMatrix target = inRows(rows, a.cols(), scaling);
        if (scaling == Scaling.TENSOR) {
            target.quantize(a, scale(dtype, largest(a)));
        } else {
            target.quantize(a);
        }
        return rows;
    }

    /**
     * Quantizes a B, with new scales.
     *
     * @param b [K, N], or [N, K] if {@code transposed}
     */
    public static ScaledMatrix ofB(
            Arena arena, Matrix b, boolean transposed, DType dtype, Scaling scaling) {
        long rows = Math.max(1, b.rows());
        long cols = Math.max(1, b.cols());
        ScaledMatrix target =
                switch (scaling) {
                    case TENSOR -> allocate(arena, dtype, b, rows, cols);
                    case ROW ->
                            allocate(arena, dtype, b, transposed ? 1 : rows, transposed ? cols : 1);
                    case BLOCK -> allocate(arena, dtype, b, Scaling.BLOCK_SIZE, Scaling.BLOCK_SIZE);
                };
        target.quantize(b);
        return target;
    }

    private static ScaledMatrix allocate(
            Arena arena, DType dtype, Matrix like, long scaleRows, long scaleCols) {
        return new ScaledMatrix(
                Matrix.allocate(arena, dtype, like.rows(), like.cols()),
                Matrix.allocate(
                        arena,
                        DType.FP32,
                        Math.ceilDiv(like.rows(), scaleRows),
                        Math.ceilDiv(like.cols(), scaleCols)),
                scaleRows,
                scaleCols);
    }

    /**
     * Quantizes the elements of {@code source}. The largest element of each block becomes the
     * largest value of the type.
     */
    public void quantize(Matrix source) {
        requireShape(source);
        for (long r = 0; r < scales.rows(); r++) {
            for (long c = 0; c < scales.cols(); c++) {
                long row = r * scaleRows;
                long col = c * scaleCols;
                long rows = Math.min(scaleRows, values.rows() - row);
                long cols = Math.min(scaleCols, values.cols() - col);
                float scale = scale(values.dtype(), largest(source.block(row, rows, col, cols)));
                scales.set(r, c, scale);
                divide(source, row, rows, col, cols, scale);
            }
        }
    }

    /** Quantizes the elements of {@code source}, all with the same scale. */
    public void quantize(Matrix source, float scale) {
        requireShape(source);
        scales.fill(() -> scale);
        divide(source, 0, values.rows(), 0, values.cols(), scale);
    }

    /**
     * Quantizes a row, with new scales, into one that travels. Allocates nothing.
     *
     * @param scaling by row or block
     */
    public static void quantizeRow(
            float[] values, int count, Scaling scaling, Matrix rows, long row) {
        DType dtype = rows.dtype();
        MemorySegment to = rows.data();
        long at = rows.offset(row, 0);
        long elements = at + valuesAt(count, scaling);
        int group = (int) scaling.colsOfScale(count);
        for (int first = 0; first < count; first += group) {
            int end = Math.min(count, first + group);
            float largest = 0;
            for (int i = first; i < end; i++) {
                float magnitude = Math.abs(values[i]);
                if (magnitude > largest && magnitude <= Float.MAX_VALUE) {
                    largest = magnitude;
                }
            }
            float scale = scale(dtype, largest);
            to.set(DType.FLOAT, at + (long) first / group * Float.BYTES, scale);
            for (int i = first; i < end; i++) {
                dtype.write(to, elements + i, values[i] / scale);
            }
        }
    }

    private void divide(Matrix source, long row, long rows, long col, long cols, float scale) {
        for (long r = row; r < row + rows; r++) {
            for (long c = col; c < col + cols; c++) {
                values.set(r, c, source.get(r, c) / scale);
            }
        }
    }

    private void requireShape(Matrix source) {
        if (source.rows() != values.rows() || source.cols() != values.cols()) {
            throw new IllegalArgumentException(
                    "cannot quantize %s into %s: expected the same shape"
                            .formatted(source.describe(), values.describe()));
        }
    }

    /** The scale that turns {@code largest} into the largest value of the type. */
    public static float scale(DType dtype, float largest) {
        return largest == 0 ? 1 : Math.max(Float.MIN_NORMAL, largest / dtype.max());
    }

    /** The largest magnitude among the finite elements; 0 if there is none. */
    public static float largest(Matrix matrix) {
        float largest = 0;
        for (long r = 0; r < matrix.rows(); r++) {
            for (long c = 0; c < matrix.cols(); c++) {
                float magnitude = Math.abs(matrix.get(r, c));
                if (magnitude > largest && magnitude <= Float.MAX_VALUE) {
                    largest = magnitude;
                }
            }
        }
        return largest;
    }

    public float get(long row, long col) {
        return values.get(row, col) * scales.get(row / scaleRows, col / scaleCols);
    }

    /** The values of all elements, fp32. */
    public Matrix dequantize(Arena arena) {
        Matrix wide = Matrix.allocate(arena, DType.FP32, values.rows(), values.cols());
        for (long r = 0; r < wide.rows(); r++) {
            for (long c = 0; c < wide.cols(); c++) {
                wide.set(r, c, get(r, c));
            }
        }
        return wide;
    }

    /**
     * Writes the values of some rows that travel into the first rows of {@code target}, which is
     * fp32 with K columns. Allocates nothing on the heap.
     */
    public static void dequantizeRows(
            Matrix rows, Scaling scaling, long firstRow, long count, Matrix target) {
        long k = target.cols();
        long scaleCols = scaling.colsOfScale(k);
        DType dtype = rows.dtype();
        MemorySegment from = rows.data();
        MemorySegment to = target.data();
        for (long r = 0; r < count; r++) {
            long row = rows.offset(firstRow + r, 0);
            long values = row + valuesAt(k, scaling);
            long wide = target.offset(r, 0);
            for (long first = 0; first < k; first += scaleCols) {
                float scale = from.get(DType.FLOAT, row + first / scaleCols * Float.BYTES);
                long end = Math.min(k, first + scaleCols);
                for (long c = first; c < end; c++) {
                    float value = dtype.fp8().widen(from.get(ValueLayout.JAVA_BYTE, values + c));
                    to.set(DType.FLOAT, wide + c * Float.BYTES, value * scale);
                }
            }
        }
    }
}
