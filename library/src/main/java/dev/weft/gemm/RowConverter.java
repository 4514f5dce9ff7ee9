package dev.weft.gemm;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * Moves pieces of rows between a matrix of any type and fp32 memory, with the roundings of {@link
 * DType}. The 16-bit types go through small heap arrays: the JIT compiler vectorizes plain loops
 * over arrays on every machine. Not thread-safe.
 */
public final class RowConverter {

    static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    static final ValueLayout.OfInt INT =
            ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    static final ValueLayout.OfShort SHORT =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private static final int PIECE = 1024;

    private final short[] halves = new short[PIECE];
    private final float[] floats = new float[PIECE];
    private final int[] bits = new int[PIECE];

    /** Copies {@code count} elements of a row, widened to fp32, to {@code target}. */
    public void widen(
            Matrix source, long row, long fromCol, long count, MemorySegment target, long offset) {
        long from = source.offset(row, fromCol);
        MemorySegment data = source.data();
        switch (source.dtype()) {
            case FP32 -> MemorySegment.copy(data, from, target, offset, count * Float.BYTES);
            case FP16, BF16 -> {
                for (long done = 0; done < count; done += PIECE) {
                    int length = (int) Math.min(PIECE, count - done);
                    MemorySegment.copy(data, SHORT, from + done * Short.BYTES, halves, 0, length);
                    long to = offset + done * Float.BYTES;
                    if (source.dtype() == DType.FP16) {
                        widenFp16(halves, floats, length);
                        MemorySegment.copy(floats, 0, target, FLOAT, to, length);
                    } else {
                        widenBf16(halves, bits, length);
                        MemorySegment.copy(bits, 0, target, INT, to, length);
                    }
                }
            }
            case E4M3, E5M2 -> {
                for (long i = 0; i < count; i++) {
                    float value = source.dtype().read(data, from + i);
                    target.set(FLOAT, offset + i * Float.BYTES, value);
                }
            }
        }
    }

    /** Rounds {@code count} fp32 values of {@code source} into a row. */
    public void narrow(
            MemorySegment source, long offset, long count, Matrix target, long row, long fromCol) {
        long to = target.offset(row, fromCol);
        MemorySegment data = target.data();
        switch (target.dtype()) {
            case FP32 -> MemorySegment.copy(source, offset, data, to, count * Float.BYTES);
            case FP16, BF16 -> {
                for (long done = 0; done < count; done += PIECE) {
                    int length = (int) Math.min(PIECE, count - done);
                    long at = offset + done * Float.BYTES;
                    MemorySegment.copy(source, FLOAT, at, floats, 0, length);
                    if (target.dtype() == DType.FP16) {
                        narrowFp16(floats, halves, length);
                    } else {
                        narrowBf16(floats, halves, length);
                    }
                    MemorySegment.copy(halves, 0, data, SHORT, to + done * Short.BYTES, length);
                }
            }
            case E4M3, E5M2 -> {
                for (long i = 0; i < count; i++) {
                    float value = source.get(FLOAT, offset + i * Float.BYTES);
                    target.dtype().write(data, to + i, value);
                }
            }
        }
    }

    private static void widenFp16(short[] source, float[] target, int count) {
        for (int i = 0; i < count; i++) {
            target[i] = Float.float16ToFloat(source[i]);
        }
    }

    /** Writes the bits of the values. */
    private static void widenBf16(short[] source, int[] bits, int count) {
        for (int i = 0; i < count; i++) {
            bits[i] = source[i] << 16;
        }
    }

    private static void narrowFp16(float[] source, short[] target, int count) {
        for (int i = 0; i < count; i++) {
            target[i] = Float.floatToFloat16(source[i]);
        }
    }

    /** The rounding of {@link DType#floatToBf16} without its branch. */
    private static void narrowBf16(float[] source, short[] target, int count) {
        for (int i = 0; i < count; i++) {
            int value = Float.floatToRawIntBits(source[i]);
            int nan = (0x7F800000 - (value & 0x7FFFFFFF)) >> 31;
            int rounded = value + 0x7FFF + ((value >>> 16) & 1);
            int quiet = value | 0x00400000;
            target[i] = (short) (((rounded & ~nan) | (quiet & nan)) >>> 16);
        }
    }
}
