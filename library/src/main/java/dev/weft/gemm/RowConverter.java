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
            case FP16 -> {
                for (long done = 0; done < count; done += PIECE) {
                    int length = loadHalves(data, from, done, count);
                    widenFp16(halves, floats, 0, length);
                    MemorySegment.copy(
                            floats, 0, target, FLOAT, offset + done * Float.BYTES, length);
                }
            }
            case BF16 -> {
                for (long done = 0; done < count; done += PIECE) {
                    int length = loadHalves(data, from, done, count);
                    widenBf16(halves, bits, length);
                    MemorySegment.copy(bits, 0, target, INT, offset + done * Float.BYTES, length);
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

    /** Loads up to a piece of 16-bit elements; returns how many. */
    private int loadHalves(MemorySegment data, long from, long done, long count) {
        int length = (int) Math.min(PIECE, count - done);
        MemorySegment.copy(data, SHORT, from + done * Short.BYTES, halves, 0, length);
        return length;
    }

    /** Rounds {@code count} fp32 values of {@code source} into a row. */
    public void narrow(
            MemorySegment source, long offset, long count, Matrix target, long row, long fromCol) {
        long to = target.offset(row, fromCol);
        MemorySegment data = target.data();
        switch (target.dtype()) {
            case FP32 -> MemorySegment.copy(source, offset, data, to, count * Float.BYTES);
            case FP16 -> {
                for (long done = 0; done < count; done += PIECE) {
                    int length = loadFloats(source, offset, done, count);
                    narrowFp16(floats, 0, halves, length);
                    MemorySegment.copy(halves, 0, data, SHORT, to + done * Short.BYTES, length);
                }
            }
            case BF16 -> {
                for (long done = 0; done < count; done += PIECE) {
                    int length = loadFloats(source, offset, done, count);
                    narrowBf16(floats, 0, halves, length);
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

    private int loadFloats(MemorySegment source, long offset, long done, long count) {
        int length = (int) Math.min(PIECE, count - done);
        MemorySegment.copy(source, FLOAT, offset + done * Float.BYTES, floats, 0, length);
        return length;
    }

    static void widenFp16(short[] source, float[] target, int at, int count) {
        for (int i = 0; i < count; i++) {
            target[at + i] = Float.float16ToFloat(source[i]);
        }
    }

    /** Writes the bits of the values. */
    static void widenBf16(short[] source, int[] bits, int count) {
        for (int i = 0; i < count; i++) {
            bits[i] = source[i] << 16;
        }
    }

    static void narrowFp16(float[] source, int at, short[] target, int count) {
        for (int i = 0; i < count; i++) {
            target[i] = Float.floatToFloat16(source[at + i]);
        }
    }

    /** The rounding of {@link DType#floatToBf16} without its branch. */
    static void narrowBf16(float[] source, int at, short[] target, int count) {
        for (int i = 0; i < count; i++) {
            int value = Float.floatToRawIntBits(source[at + i]);
            int nan = (0x7F800000 - (value & 0x7FFFFFFF)) >> 31;
            int rounded = value + 0x7FFF + ((value >>> 16) & 1);
            int quiet = value | 0x00400000;
            target[i] = (short) (((rounded & ~nan) | (quiet & nan)) >>> 16);
        }
    }
}
