package dev.weft.tensor;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.Objects;
import java.util.function.DoubleSupplier;

/**
 * A view of {@code rows x cols} elements over a memory segment, row after row, {@code rowPitch}
 * elements apart. It owns no memory: the segment's arena decides how long the view may be used. The
 * view is immutable, and as safe to share between threads as its segment.
 *
 * @param data starts at element (0, 0)
 * @param rowPitch elements from one row's start to the next one's, at least {@code cols}
 */
public record Matrix(MemorySegment data, DType dtype, long rows, long cols, long rowPitch) {

    /** Rows of a new matrix start on their own cache line if the row length allows it. */
    private static final long ALIGNMENT_BYTES = 64;

    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

    public Matrix {
        Objects.requireNonNull(data, "data");
        Objects.requireNonNull(dtype, "dtype");
        requireSizes(rows, cols, rowPitch);
        long needed = bytes(dtype, rows, cols, rowPitch);
        if (data.byteSize() < needed) {
            throw new IllegalArgumentException(
                    "matrix of %s x %s %s needs %s bytes, the segment has %s"
                            .formatted(rows, cols, dtype.label(), needed, data.byteSize()));
        }
    }

    /** A contiguous view of the start of {@code data}. */
    public static Matrix of(MemorySegment data, DType dtype, long rows, long cols) {
        return new Matrix(data, dtype, rows, cols, cols);
    }

    /** A zeroed contiguous matrix that lives as long as {@code arena}. */
    public static Matrix allocate(Arena arena, DType dtype, long rows, long cols) {
        long bytes = contiguousBytes(dtype, rows, cols);
        return of(arena.allocate(bytes, ALIGNMENT_BYTES), dtype, rows, cols);
    }

    /** A contiguous fp32 matrix with a copy of {@code values}, whose rows must be equally long. */
    public static Matrix copyOf(Arena arena, float[][] values) {
        int cols = values.length == 0 ? 0 : values[0].length;
        Matrix matrix = allocate(arena, DType.FP32, values.length, cols);
        for (int r = 0; r < values.length; r++) {
            if (values[r].length != cols) {
                throw new IllegalArgumentException(
                        "row " + r + " has " + values[r].length + " values, row 0 has " + cols);
            }
            MemorySegment.copy(values[r], 0, matrix.data, FLOAT, matrix.offset(r, 0), cols);
        }
        return matrix;
    }

    /** A contiguous fp32 matrix with a copy of {@code values}, row after row. */
    public static Matrix copyOf(Arena arena, float[] values, long rows, long cols) {
        return copyOf(arena, FloatBuffer.wrap(values), rows, cols);
    }

    /** A contiguous fp32 matrix with a copy of the remaining {@code values}, row after row. */
    public static Matrix copyOf(Arena arena, FloatBuffer values, long rows, long cols) {
        Matrix matrix = allocate(arena, DType.FP32, rows, cols);
        requireCount(values.remaining(), rows, cols);
        matrix.data
                .asByteBuffer()
                .order(ByteOrder.nativeOrder())
                .asFloatBuffer()
                .put(values.duplicate());
        return matrix;
    }

    private static void requireCount(long values, long rows, long cols) {
        if (values != rows * cols) {
            throw new IllegalArgumentException(
                    "%s values for [%s, %s]: expected %s"
                            .formatted(values, rows, cols, rows * cols));
        }
    }

    /** Bytes of a contiguous matrix, checked for overflow. */
    public static long contiguousBytes(DType dtype, long rows, long cols) {
        requireSizes(rows, cols, cols);
        return bytes(dtype, rows, cols, cols);
    }

    private static void requireSizes(long rows, long cols, long rowPitch) {
        if (rows < 0 || cols < 0 || rowPitch < cols) {
            throw new IllegalArgumentException(
                    """
                    matrix of %s x %s with row pitch %s: sizes must not be negative and the \
                    pitch not below the columns\
                    """
                            .formatted(rows, cols, rowPitch));
        }
    }

    private static long bytes(DType dtype, long rows, long cols, long rowPitch) {
        try {
            long rowBytes = Math.multiplyExact(cols, (long) dtype.bytes());
            return rows == 0
                    ? 0
                    : Math.addExact(
                            Math.multiplyExact(
                                    Math.multiplyExact(rows - 1, rowPitch), (long) dtype.bytes()),
                            rowBytes);
        } catch (ArithmeticException e) {
            throw new IllegalArgumentException(
                    "matrix of %s x %s %s does not fit 64-bit addresses"
                            .formatted(rows, cols, dtype.label()),
                    e);
        }
    }

    /** Byte offset of element ({@code row}, {@code col}) in {@link #data}. */
    public long offset(long row, long col) {
        return (row * rowPitch + col) * dtype.bytes();
    }

    /** One element; for many, {@link #toArray} and {@link #converted} are faster. */
    public float get(long row, long col) {
        return dtype.read(data, offset(checkedRow(row), Objects.checkIndex(col, cols)));
    }

    /** Sets one element, rounded to this type. */
    public void set(long row, long col, float value) {
        dtype.write(data, offset(checkedRow(row), Objects.checkIndex(col, cols)), value);
    }

    private long checkedRow(long row) {
        return Objects.checkIndex(row, rows);
    }

    /** A copy of all elements, row after row. */
    public float[] toArray() {
        float[] values = new float[Math.toIntExact(Math.multiplyExact(rows, cols))];
        for (int r = 0; r < rows; r++) {
            readRow(r, values, (int) (r * cols));
        }
        return values;
    }

    /** A copy of all elements, an array for each row. */
    public float[][] toArrays() {
        float[][] values = new float[Math.toIntExact(rows)][Math.toIntExact(cols)];
        for (int r = 0; r < rows; r++) {
            readRow(r, values[r], 0);
        }
        return values;
    }

    /** The values of a row, widened, into {@code values} from {@code at} on. */
    void readRow(long row, float[] values, int at) {
        int count = (int) cols;
        long from = offset(row, 0);
        if (dtype == DType.FP32) {
            MemorySegment.copy(data, FLOAT, from, values, at, count);
            return;
        }
        for (int c = 0; c < count; c++) {
            values[at + c] = dtype.read(data, from + (long) c * dtype.bytes());
        }
    }

    /** A contiguous copy in another type, each element rounded once. */
    public Matrix converted(Arena arena, DType type) {
        Matrix copy = allocate(arena, type, rows, cols);
        if (type == dtype) {
            copy.copyFrom(this);
            return copy;
        }
        float[] values = new float[Math.toIntExact(cols)];
        for (long r = 0; r < rows; r++) {
            readRow(r, values, 0);
            copy.writeRow(r, values);
        }
        return copy;
    }

    private void writeRow(long row, float[] values) {
        long to = offset(row, 0);
        if (dtype == DType.FP32) {
            MemorySegment.copy(values, 0, data, FLOAT, to, values.length);
            return;
        }
        for (int c = 0; c < values.length; c++) {
            dtype.write(data, to + (long) c * dtype.bytes(), values[c]);
        }
    }

    /** Sets the elements, row after row, to the values of {@code values}, rounded to this type. */
    public void fill(DoubleSupplier values) {
        for (long row = 0; row < rows; row++) {
            for (long col = 0; col < cols; col++) {
                set(row, col, (float) values.getAsDouble());
            }
        }
    }

    /** Bytes of the elements of one row, without the gap to the next. */
    public long rowBytes() {
        return cols * dtype.bytes();
    }

    /** Bytes of all elements, without gaps. */
    public long elementBytes() {
        return rows * rowBytes();
    }

    /** Whether there is no gap between rows. */
    public boolean isContiguous() {
        return rowPitch == cols || rows <= 1;
    }

    /** A view of {@code count} rows from {@code first} on. */
    public Matrix rows(long first, long count) {
        return block(first, count, 0, cols);
    }

    /** A view of a rectangle. */
    public Matrix block(long firstRow, long rowCount, long firstCol, long colCount) {
        Objects.checkFromIndexSize(firstRow, rowCount, rows);
        Objects.checkFromIndexSize(firstCol, colCount, cols);
        long from = rowCount == 0 ? 0 : offset(firstRow, firstCol);
        return new Matrix(data.asSlice(from), dtype, rowCount, colCount, rowPitch);
    }

    /** Copies all elements of {@code source}, which must have this shape and type. */
    public void copyFrom(Matrix source) {
        if (source.rows != rows || source.cols != cols || source.dtype != dtype) {
            throw new IllegalArgumentException(
                    "cannot copy " + source.describe() + " into " + describe());
        }
        if (isContiguous() && source.isContiguous()) {
            MemorySegment.copy(source.data, 0, data, 0, elementBytes());
            return;
        }
        for (long r = 0; r < rows; r++) {
            MemorySegment.copy(source.data, source.offset(r, 0), data, offset(r, 0), rowBytes());
        }
    }

    /**
     * Copies a rectangle of {@code source}, which must have this type. It makes no views, so it
     * allocates nothing.
     */
    public void copyBlock(
            Matrix source,
            long sourceRow,
            long sourceCol,
            long row,
            long col,
            long rowCount,
            long colCount) {
        if (colCount == cols && colCount == rowPitch && colCount == source.rowPitch) {
            long bytes = rowCount * rowBytes();
            long from = source.offset(sourceRow, sourceCol);
            MemorySegment.copy(source.data, from, data, offset(row, col), bytes);
            return;
        }
        long bytes = colCount * dtype.bytes();
        for (long r = 0; r < rowCount; r++) {
            long from = source.offset(sourceRow + r, sourceCol);
            MemorySegment.copy(source.data, from, data, offset(row + r, col), bytes);
        }
    }

    /** Whether both have the same shape, type and bits. */
    public boolean bitwiseEquals(Matrix other) {
        return other.rows == rows
                && other.cols == cols
                && other.dtype == dtype
                && firstDifferentRow(other) < 0;
    }

    /**
     * Whether both have the same shape, type and bits, where any NaN is the same as any other:
     * which one a sum gives depends on the order of its operands and on the processor.
     */
    public boolean equalsUpToNaN(Matrix other) {
        if (other.rows != rows || other.cols != cols || other.dtype != dtype) {
            return false;
        }
        for (long row = 0; row < rows; row++) {
            if (rows(row, 1).firstDifferentRow(other.rows(row, 1)) < 0) {
                continue;
            }
            for (long col = 0; col < cols; col++) {
                // Float.compare tells zeros apart, and no NaN from another.
                if (Float.compare(get(row, col), other.get(row, col)) != 0) {
                    return false;
                }
            }
        }
        return true;
    }

    /** The first row whose bits differ from {@code other}'s (same shape and type), or -1. */
    public long firstDifferentRow(Matrix other) {
        for (long r = 0; r < rows; r++) {
            long mine = offset(r, 0);
            long theirs = other.offset(r, 0);
            if (MemorySegment.mismatch(
                            data, mine, mine + rowBytes(), other.data, theirs, theirs + rowBytes())
                    >= 0) {
                return r;
            }
        }
        return -1;
    }

    /** Shape and type in words, as error messages use them: {@code [3, 5] fp16}. */
    public String describe() {
        return "[" + rows + ", " + cols + "] " + dtype.label();
    }
}
