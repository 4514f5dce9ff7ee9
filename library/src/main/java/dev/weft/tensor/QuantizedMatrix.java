package dev.weft.tensor;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.Optional;

/**
 * A matrix whose rows are blocks ({@link BlockType}), as in GGUF files: there a B is [N, K], so
 * that blocks lie along K. Like {@link Matrix}, it is a view that owns no memory.
 *
 * @param data starts at the first block of row 0
 * @param cols a multiple of the elements of a block
 * @param rowPitch bytes from one row's start to the next one's
 */
public record QuantizedMatrix(
        MemorySegment data, BlockType type, long rows, long cols, long rowPitch) {

    private static final long ALIGNMENT_BYTES = 64;

    public QuantizedMatrix {
        Objects.requireNonNull(data, "data");
        long rowBytes = type.rowBytes(cols);
        long needed =
                rows <= 0 ? 0 : Math.addExact(Math.multiplyExact(rows - 1, rowPitch), rowBytes);
        if (rows < 0 || rowPitch < rowBytes || data.byteSize() < needed) {
            throw new IllegalArgumentException(
                    "[%s, %s] %s with rows %s bytes apart in %s bytes: expected rows of %s bytes"
                            .formatted(
                                    rows, cols, type.label(), rowPitch, data.byteSize(), rowBytes));
        }
    }

    /** Rows without gaps, at the start of {@code data}. */
    public QuantizedMatrix(MemorySegment data, BlockType type, long rows, long cols) {
        this(data, type, rows, cols, type.rowBytes(cols));
    }

    /** A zeroed matrix that lives as long as {@code arena}. */
    public static QuantizedMatrix allocate(Arena arena, BlockType type, long rows, long cols) {
        long bytes = Math.multiplyExact(rows, type.rowBytes(cols));
        return new QuantizedMatrix(arena.allocate(bytes, ALIGNMENT_BYTES), type, rows, cols);
    }

    /**
     * Quantizes a B, whose elements must be finite and not so large that a scale in fp16 overflows.
     *
     * @param b [K, N], or [N, K] if {@code transposed}; K is a multiple of the elements of a block
     * @param type one of {@link BlockType#MULTIPLIED}
     * @return [N, K]
     */
    public static QuantizedMatrix ofB(Arena arena, Matrix b, boolean transposed, BlockType type) {
        QuantizedMatrix target =
                allocate(
                        arena,
                        type,
                        transposed ? b.rows() : b.cols(),
                        transposed ? b.cols() : b.rows());
        Quantizer quantizer = new Quantizer(type);
        float[] row = new float[Math.toIntExact(target.cols)];
        for (long n = 0; n < target.rows; n++) {
            if (transposed) {
                b.readRow(n, row, 0);
            }
            for (int k = 0; k < row.length && !transposed; k++) {
                row[k] = b.get(k, n);
            }
            for (int k = 0; k < row.length; k += type.elements()) {
                quantizer.write(row, k, target.data, target.offset(n, k));
            }
        }
        return target;
    }

    /** Byte offset of the block of element ({@code row}, {@code col}) in {@link #data}. */
    public long offset(long row, long col) {
        return row * rowPitch + col / type.elements() * type.bytes();
    }

    /** Bytes of all blocks, without gaps. */
    public long bytes() {
        return rows * type.rowBytes(cols);
    }

    /** A view of a rectangle, whose columns are whole blocks. */
    public QuantizedMatrix block(long firstRow, long rowCount, long firstCol, long colCount) {
        Objects.checkFromIndexSize(firstRow, rowCount, rows);
        Objects.checkFromIndexSize(firstCol, colCount, cols);
        if (firstCol % type.elements() != 0) {
            throw new IllegalArgumentException(
                    "%s columns from column %s of %s: expected multiples of %s"
                            .formatted(colCount, firstCol, describe(), type.elements()));
        }
        long from = rowCount == 0 ? 0 : offset(firstRow, firstCol);
        return new QuantizedMatrix(data.asSlice(from), type, rowCount, colCount, rowPitch);
    }

    /** The values of all elements, fp32. */
    public Matrix dequantize(Arena arena) {
        Matrix wide = Matrix.allocate(arena, DType.FP32, rows, cols);
        dequantize(0, wide);
        return wide;
    }

    /** The values of the first rows, from column {@code firstCol} on, as many as fit. */
    void dequantize(long firstCol, Matrix into) {
        int size = type.elements();
        float[] values = new float[size];
        long end = firstCol + into.cols();
        for (long row = 0; row < into.rows(); row++) {
            for (long col = firstCol - firstCol % size; col < end; col += size) {
                type.decode(data, offset(row, col), values, 0);
                long from = Math.max(col, firstCol);
                int count = (int) (Math.min(col + size, end) - from);
                MemorySegment.copy(
                        values,
                        (int) (from - col),
                        into.data(),
                        DType.FLOAT,
                        into.offset(row, from - firstCol),
                        count);
            }
        }
    }

    /** Where the first block is whose values are not all finite, in words. */
    Optional<String> firstNotFinite() {
        for (long row = 0; row < rows; row++) {
            for (long col = 0; col < cols; col += type.elements()) {
                if (!type.isFinite(data, offset(row, col))) {
                    return Optional.of("the block at row %d, column %d".formatted(row, col));
                }
            }
        }
        return Optional.empty();
    }

    /** Shape and type in words, as error messages use them: {@code [3, 256] q4_k}. */
    public String describe() {
        return "[" + rows + ", " + cols + "] " + type.label();
    }
}
