package dev.weft.gemm.code;

import dev.weft.tensor.BlockType;
import dev.weft.tensor.QuantizedMatrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A B in blocks, cut along K into parts of {@link #DEPTH} and along N into panels of {@code cols}
 * columns, and the rows of A that are multiplied with them. The panels of a part follow each other;
 * then comes the next part. Everything is in steps of {@link #STEP} along k:
 *
 * <pre>
 * panel: numbers: step: k = 0 .. 3 of column 0, of column 1, ...; k = 4 .. 7 of column 0, ...
 *                 of 4 bits: the same of k = 0 .. 15, each with k + 16 in the upper half of its byte
 *        scales:  step: of each column, fp16
 *                 of Q4_K: 256 k: scale and offset of each column, fp16
 *                                 step: scale, then offset, of each column, a byte
 *        nothing, up to a multiple of 64 bytes
 * rows:  step: k = 0 .. 3 of row 0, of row 1, ...; k = 4 .. 7 of row 0, ...; all 8 bits
 *              (if rows are whole: k = 0 .. 31 of row 0, of row 1, ...)
 *              of each row, what its sums start from: int, -{@link #bias} x the sum of its numbers;
 *              of Q4_K: fp32, minus that sum
 *              of each row, its scale, fp32
 * </pre>
 *
 * Thread-safe.
 *
 * @param type one of {@link BlockType#MULTIPLIED}
 * @param isUnsigned whether 8-bit numbers have 128 added, for instructions that multiply unsigned
 *     bytes with signed ones
 */
public record BlockPanels(BlockType type, int cols, boolean isUnsigned) {

    /** Elements of A, and of a column of B, whose products are summed as whole numbers. */
    public static final int STEP = 32;

    /** A panel of Q8_0 then has 17 KiB: it and a tile of rows fit the nearest cache. */
    public static final int DEPTH = 1024;

    static final int GROUP = 4;
    static final int GROUPS = STEP / GROUP;

    /** Steps of K that share the scales of Q4_K. */
    static final int STEPS_OF_K = 8;

    private static final int ALIGNMENT = 64;
    private static final int SIGN = 0x80;

    /** Whether numbers have 4 bits. */
    boolean isHalved() {
        return type != BlockType.Q8_0;
    }

    boolean hasOffsets() {
        return type == BlockType.Q4_K;
    }

    /** What is added to numbers of B in panels, and must be taken from sums. */
    public int bias() {
        return switch (type) {
            case Q8_0 -> isUnsigned ? SIGN : 0;
            case Q4_0 -> 8;
            default -> 0;
        };
    }

    int stepBytes() {
        return STEP * cols / (isHalved() ? 2 : 1);
    }

    long numberBytes(long k) {
        return k / STEP * stepBytes();
    }

    int scaleBytes() {
        return cols * Short.BYTES;
    }

    /** Bytes of a panel of a part of K. */
    public long panelBytes(long k) {
        long steps = type.rowBytes(k) / type.bytes() * (type.elements() / STEP);
        long scales = steps * scaleBytes();
        if (hasOffsets()) {
            scales += steps / STEPS_OF_K * 2 * scaleBytes();
        }
        return Math.ceilDiv(steps * stepBytes() + scales, ALIGNMENT) * ALIGNMENT;
    }

    /** Bytes of all panels of a [k, n]. */
    public long bytes(long k, long n) {
        long column =
                Math.addExact(
                        Math.multiplyExact(k / DEPTH, panelBytes(DEPTH)), panelBytes(k % DEPTH));
        return Math.multiplyExact(column, Math.ceilDiv(n, cols));
    }

    /** Where, in a [k, n], the panel of column {@code col} is in the part from {@code fromK} on. */
    public long offset(long k, long n, long fromK, long col) {
        long before = fromK / DEPTH * Math.ceilDiv(n, cols) * panelBytes(DEPTH);
        return before + col / cols * panelBytes(Math.min(DEPTH, k - fromK));
    }

    /** Bytes of a step of {@code rows} rows of A. */
    public static int rowStepBytes(int rows) {
        return rows * (STEP + Integer.BYTES + Float.BYTES);
    }

    /** Where number {@code k} of a row is in a step of A. */
    public static int inStep(int rows, int row, int k, boolean wholeRows) {
        return wholeRows ? row * STEP + k : (k / GROUP * rows + row) * GROUP + k % GROUP;
    }

    /**
     * Writes some columns of a matrix of {@code n}.
     *
     * @param b [count, K], the columns from {@code firstCol} on, which begins a panel
     */
    public void write(QuantizedMatrix b, long firstCol, long n, MemorySegment panels) {
        long k = b.cols();
        for (long col = 0; col < b.rows(); col++) {
            int place = (int) (col % cols);
            for (long from = 0; from < k; from += type.elements()) {
                long block = b.offset(col, from);
                long part = from / DEPTH * DEPTH;
                long panel = offset(k, n, part, firstCol + col);
                long scales = panel + numberBytes(Math.min(DEPTH, k - part));
                writeScales(b.data(), block, panels, scales, from - part, place);
                for (int i = 0; i < type.elements(); i += STEP) {
                    long step = panel + (from - part + i) / STEP * stepBytes();
                    writeNumbers(b.data(), block, i, panels, step, place);
                }
            }
        }
    }

    private void writeNumbers(
            MemorySegment data, long block, int first, MemorySegment panels, long step, int place) {
        int bytes = isHalved() ? STEP / 2 : STEP;
        for (int i = 0; i < bytes; i++) {
            int number = type.number(data, block, first + i) + bias();
            if (isHalved()) {
                number |= type.number(data, block, first + i + bytes) + bias() << 4;
            }
            long at = step + ((long) i / GROUP * cols + place) * GROUP + i % GROUP;
            panels.set(ValueLayout.JAVA_BYTE, at, (byte) number);
        }
    }

    private void writeScales(
            MemorySegment data, long block, MemorySegment panels, long scales, long k, int place) {
        long steps = hasOffsets() ? k / type.elements() * (2 + STEPS_OF_K) : k / STEP;
        long own = scales + steps * scaleBytes();
        copyHalf(data, block, panels, own, place);
        if (hasOffsets()) {
            copyHalf(data, block + Short.BYTES, panels, own + scaleBytes(), place);
            for (int j = 0; j < STEPS_OF_K; j++) {
                long at = own + (2L + j) * scaleBytes() + place;
                panels.set(ValueLayout.JAVA_BYTE, at, (byte) BlockType.scaleOf(data, block, j));
                panels.set(
                        ValueLayout.JAVA_BYTE,
                        at + cols,
                        (byte) BlockType.offsetOf(data, block, j));
            }
        }
    }

    /** Writes what follows a row's numbers in the step at {@code at} of packed rows. */
    public void writeStart(MemorySegment packed, long at, int rows, int row, int sum, float scale) {
        long start = at + (long) rows * STEP + (long) row * Integer.BYTES;
        if (hasOffsets()) {
            packed.set(ValueLayout.JAVA_FLOAT_UNALIGNED, start, -sum);
        } else {
            packed.set(ValueLayout.JAVA_INT_UNALIGNED, start, -bias() * sum);
        }
        long scales = start + (long) rows * Integer.BYTES;
        packed.set(ValueLayout.JAVA_FLOAT_UNALIGNED, scales, scale);
    }

    private static void copyHalf(
            MemorySegment data, long from, MemorySegment panels, long to, int place) {
        short half = data.get(ValueLayout.JAVA_SHORT_UNALIGNED, from);
        panels.set(ValueLayout.JAVA_SHORT_UNALIGNED, to + (long) place * Short.BYTES, half);
    }
}
