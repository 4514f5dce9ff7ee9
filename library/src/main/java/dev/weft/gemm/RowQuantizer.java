package dev.weft.gemm;

import dev.weft.gemm.code.BlockPanels;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * Quantizes rows of A to 8 bits, {@link BlockPanels#STEP} neighbours with one scale: with their
 * largest magnitude m, all in fp32,
 *
 * <pre>
 * scale = m / 127, number = element x (127 / m), rounded to the nearest whole number, ties to even
 * </pre>
 *
 * If m is below 2^-100, scale and numbers are 0. If an element is infinite or NaN, the scale is NaN
 * and numbers are 0. Not thread-safe.
 */
public final class RowQuantizer {

    private static final int STEP = BlockPanels.STEP;
    private static final int PIECE = 1024;
    private static final int INFINITE = 0x7F800000;
    private static final float LEAST = 0x1p-100f;

    /** Added to a float below 2^22, it leaves the rounded number in the lowest bits. */
    private static final float ROUNDER = 0x1.8p23f;

    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

    private final RowConverter converter = new RowConverter();
    private final float[] values = new float[PIECE];
    private final int[] bits = new int[PIECE];
    private final MemorySegment valueBytes = MemorySegment.ofArray(values);
    private final MemorySegment bitBytes = MemorySegment.ofArray(bits);

    /**
     * Writes {@code rows} rows as {@link BlockPanels} describes.
     *
     * @param a whose columns are a multiple of a step
     * @param wholeRows whether the numbers of a row lie side by side
     */
    void write(
            Matrix a,
            long firstRow,
            int rows,
            boolean wholeRows,
            BlockPanels layout,
            MemorySegment to,
            long offset) {
        long stepBytes = BlockPanels.rowStepBytes(rows);
        for (int row = 0; row < rows; row++) {
            for (long col = 0; col < a.cols(); col += PIECE) {
                int count = (int) Math.min(PIECE, a.cols() - col);
                converter.widen(a, firstRow + row, col, count, valueBytes, 0);
                long at = offset + col / STEP * stepBytes;
                MemorySegment.copy(valueBytes, 0, bitBytes, 0, (long) count * Float.BYTES);
                for (int first = 0; first < count; first += STEP) {
                    float scale = round(first);
                    pack(first, scale, layout, rows, row, wholeRows, to, at);
                    at += stepBytes;
                }
            }
        }
    }

    /** The scale of 32 values, which become {@link #ROUNDER} plus their numbers. */
    private float round(int first) {
        int largest = 0;
        for (int i = first; i < first + STEP; i++) {
            largest = Math.max(largest, bits[i] & Integer.MAX_VALUE);
        }
        float m = Float.intBitsToFloat(largest);
        boolean ordinary = largest < INFINITE && m >= LEAST;
        float factor = ordinary ? 127 / m : 0;
        for (int i = first; i < first + STEP; i++) {
            values[i] = values[i] * factor + ROUNDER;
        }
        if (!ordinary) {
            // NaN times 0 would be NaN.
            Arrays.fill(values, first, first + STEP, ROUNDER);
            return largest < INFINITE ? 0 : Float.NaN;
        }
        return m / 127;
    }

    private void pack(
            int first,
            float scale,
            BlockPanels layout,
            int rows,
            int row,
            boolean wholeRows,
            MemorySegment to,
            long at) {
        MemorySegment.copy(
                valueBytes,
                (long) first * Float.BYTES,
                bitBytes,
                (long) first * Float.BYTES,
                (long) STEP * Float.BYTES);
        int sum = 0;
        for (int i = first; i < first + STEP; i++) {
            sum += (byte) bits[i];
        }
        for (int k = 0; k < STEP; k += Integer.BYTES) {
            int i = first + k;
            int four =
                    bits[i] & 0xFF
                            | (bits[i + 1] & 0xFF) << 8
                            | (bits[i + 2] & 0xFF) << 16
                            | bits[i + 3] << 24;
            to.set(INT, at + BlockPanels.inStep(rows, row, k, wholeRows), four);
        }
        layout.writeStart(to, at, rows, row, sum, scale);
    }

    /** The values that the numbers of all of A stand for, each rounded to fp32. */
    public static Matrix values(Matrix a, Arena arena) {
        Matrix all = Matrix.allocate(arena, DType.FP32, a.rows(), a.cols());
        RowQuantizer quantizer = new RowQuantizer();
        for (long row = 0; row < a.rows(); row++) {
            for (long col = 0; col < a.cols(); col += STEP) {
                quantizer.converter.widen(a, row, col, STEP, quantizer.valueBytes, 0);
                MemorySegment.copy(
                        quantizer.valueBytes, 0, quantizer.bitBytes, 0, (long) STEP * Float.BYTES);
                float scale = quantizer.round(0);
                for (int i = 0; i < STEP; i++) {
                    all.set(row, col + i, (quantizer.values[i] - ROUNDER) * scale);
                }
            }
        }
        return all;
    }
}
