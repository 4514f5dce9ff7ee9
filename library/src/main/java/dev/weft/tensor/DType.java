package dev.weft.tensor;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Locale;

/**
 * An element type. All three widen to fp32 without loss; narrowing rounds to nearest, ties to even.
 * Memory is little-endian, as in every file format Weft reads.
 */
public enum DType {
    FP32(4),
    FP16(2),
    BF16(2);

    /** Unaligned, so that a view may start at any byte of a file. */
    static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(java.nio.ByteOrder.LITTLE_ENDIAN);

    static final ValueLayout.OfShort SHORT =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(java.nio.ByteOrder.LITTLE_ENDIAN);

    private final int bytes;

    DType(int bytes) {
        this.bytes = bytes;
    }

    /** Bytes per element. */
    public int bytes() {
        return bytes;
    }

    /**
     * The name on the command line and in run records: {@code fp32}, {@code fp16}, {@code bf16}.
     */
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** The type named {@code label}; the inverse of {@link #label()}. */
    public static DType of(String label) {
        for (DType type : values()) {
            if (type.label().equals(label)) {
                return type;
            }
        }
        throw new IllegalArgumentException(
                "unknown dtype '" + label + "': expected fp32, fp16 or bf16");
    }

    /** The type that holds both without loss: equal types stay, any mixture becomes fp32. */
    public static DType promote(DType a, DType b) {
        return a == b ? a : FP32;
    }

    /** The element at {@code byteOffset}, widened. */
    public float read(MemorySegment data, long byteOffset) {
        return switch (this) {
            case FP32 -> data.get(FLOAT, byteOffset);
            case FP16 -> Float.float16ToFloat(data.get(SHORT, byteOffset));
            case BF16 -> bf16ToFloat(data.get(SHORT, byteOffset));
        };
    }

    /** Rounds {@code value} to this type and stores it at {@code byteOffset}. */
    public void write(MemorySegment data, long byteOffset, float value) {
        switch (this) {
            case FP32 -> data.set(FLOAT, byteOffset, value);
            case FP16 -> data.set(SHORT, byteOffset, Float.floatToFloat16(value));
            case BF16 -> data.set(SHORT, byteOffset, floatToBf16(value));
        }
    }

    /** {@code value} rounded to this type and widened again. */
    public float round(float value) {
        return switch (this) {
            case FP32 -> value;
            case FP16 -> Float.float16ToFloat(Float.floatToFloat16(value));
            case BF16 -> bf16ToFloat(floatToBf16(value));
        };
    }

    /** The relative spacing of neighbouring normal values, 2^-23, 2^-10 or 2^-7. */
    public double epsilon() {
        return switch (this) {
            case FP32 -> 0x1p-23;
            case FP16 -> 0x1p-10;
            case BF16 -> 0x1p-7;
        };
    }

    public static float bf16ToFloat(short bits) {
        return Float.intBitsToFloat(bits << 16);
    }

    public static short floatToBf16(float value) {
        int bits = Float.floatToRawIntBits(value);
        if (Float.isNaN(value)) {
            // Rounding could carry a NaN into infinity: keep the top bits and set the quiet bit.
            return (short) ((bits >>> 16) | 0x0040);
        }
        return (short) ((bits + 0x7FFF + ((bits >>> 16) & 1)) >>> 16);
    }
}
