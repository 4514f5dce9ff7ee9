package dev.weft.gemm;

import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * Moves pieces of rows between a matrix of any type and fp32 memory, with the roundings of {@link
 * dev.weft.tensor.DType}. The 16-bit types go through small heap arrays, because the JIT compiler
 * turns plain loops over arrays into vector conversions on every machine. Not for two threads at a
 * time.
 */
final class RowConverter {

    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfInt INT =
            ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfShort SHORT =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private static final int PIECE = 1024;

    private final short[] halves = new short[PIECE];
    private final float[] floats = new float[PIECE];
    private final int[] bits = new int[PIECE];

    /** Copies {@code count} elements of a row, widened to fp32, to {@code target}. */
    void widen(
            Matrix source, long row, long fromCol, long count, MemorySegment target, long offset) {
        long from = source.offset(row, fromCol);
        switch (source.dtype()) {
            case FP32 ->
                    MemorySegment.copy(source.data(), from, target, offset, count * Float.BYTES);
            case FP16 -> {
                for (long done = 0; done < count; done += PIECE) {
                    int length = (int) Math.min(PIECE, count - done);
                    long at = from + done * Short.BYTES;
                    MemorySegment.copy(source.data(), SHORT, at, halves, 0, length);
                    widenFp16(halves, floats, length);
                    MemorySegment.copy(
                            floats, 0, target, FLOAT, offset + done * Float.BYTES, length);
                }
            }
            case BF16 -> {
                for (long done = 0; done < count; done += PIECE) {
                    int length = (int) Math.min(PIECE, count - done);
                    long at = from + done * Short.BYTES;
                    MemorySegment.copy(source.data(), SHORT, at, halves, 0, length);
                    widenBf16(halves, bits, length);
                    MemorySegment.copy(bits, 0, target, INT, offset + done * Float.BYTES, length);
                }
            }
        }
    }

    /** Rounds {@code count} fp32 values of {@code source} into a row. */
    void narrow(
            MemorySegment source, long offset, long count, Matrix target, long row, long fromCol) {
        long to = target.offset(row, fromCol);
        switch (target.dtype()) {
            case FP32 -> MemorySegment.copy(source, offset, target.data(), to, count * Float.BYTES);
            case FP16 -> {
                for (long done = 0; done < count; done += PIECE) {
                    int length = (int) Math.min(PIECE, count - done);
                    long at = offset + done * Float.BYTES;
                    MemorySegment.copy(source, FLOAT, at, floats, 0, length);
                    narrowFp16(floats, halves, length);
                    MemorySegment.copy(
                            halves, 0, target.data(), SHORT, to + done * Short.BYTES, length);
                }
            }
            case BF16 -> {
                for (long done = 0; done < count; done += PIECE) {
                    int length = (int) Math.min(PIECE, count - done);
                    long at = offset + done * Float.BYTES;
                    MemorySegment.copy(source, INT, at, bits, 0, length);
                    narrowBf16(bits, halves, length);
                    MemorySegment.copy(
                            halves, 0, target.data(), SHORT, to + done * Short.BYTES, length);
                }
            }
        }
    }

    private static void widenFp16(short[] source, float[] target, int length) {
        for (int i = 0; i < length; i++) {
            target[i] = Float.float16ToFloat(source[i]);
        }
    }

    private static void widenBf16(short[] source, int[] target, int length) {
        for (int i = 0; i < length; i++) {
            target[i] = source[i] << 16;
        }
    }

    private static void narrowFp16(float[] source, short[] target, int length) {
        for (int i = 0; i < length; i++) {
            target[i] = Float.floatToFloat16(source[i]);
        }
    }

    /** The rounding of {@link dev.weft.tensor.DType#floatToBf16} without its branch. */
    private static void narrowBf16(int[] source, short[] target, int length) {
        for (int i = 0; i < length; i++) {
            int value = source[i];
            int nan = (0x7F800000 - (value & 0x7FFFFFFF)) >> 31;
            int rounded = value + 0x7FFF + ((value >>> 16) & 1);
            int quiet = value | 0x00400000;
            target[i] = (short) (((rounded & ~nan) | (quiet & nan)) >>> 16);
        }
    }
}
