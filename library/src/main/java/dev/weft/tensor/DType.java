package dev.weft.tensor;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * An element type. All widen to fp32 without loss; narrowing rounds to nearest, ties to even.
 * Memory is little-endian, as in every file format Weft reads.
 *
 * <p>The 8-bit types hold scaled values ({@link ScaledMatrix}): narrowing to them turns larger
 * values, including infinities, into the largest finite one.
 */
public enum DType {
    FP32(4, 0x1p-23, Float.MAX_VALUE, "float32"),
    FP16(2, 0x1p-10, 65504, "float16", "half"),
    BF16(2, 0x1p-7, 0x1.FEp127f, "bfloat16"),
    /** 4 bits of exponent, 3 of mantissa, no infinities; at most 448. */
    E4M3(1, 0x1p-3, 448, "float8_e4m3fn"),
    /** 5 bits of exponent, 2 of mantissa; at most 57344. */
    E5M2(1, 0x1p-2, 57344, "float8_e5m2");

    /** The types of products, and of operands that have no scales. */
    public static final List<DType> UNSCALED = List.of(FP32, FP16, BF16);

    /** Unaligned, so that a view may start at any byte of a file. */
    static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    static final ValueLayout.OfInt INT =
            ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    static final ValueLayout.OfShort SHORT =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private final int bytes;
    private final double epsilon;
    private final float max;
    private final List<String> elsewhere;

    /**
     * @param elsewhere its names in NumPy, ml_dtypes and PyTorch
     */
    DType(int bytes, double epsilon, float max, String... elsewhere) {
        this.bytes = bytes;
        this.epsilon = epsilon;
        this.max = max;
        this.elsewhere = List.of(elsewhere);
    }

    /** Bytes per element. */
    public int bytes() {
        return bytes;
    }

    /**
     * The name on the command line and in run records: {@code fp32}, {@code fp16}, {@code bf16},
     * {@code e4m3}, {@code e5m2}.
     */
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /**
     * The type with this {@link #label()}, or with this name in NumPy, ml_dtypes or PyTorch: {@code
     * float32}, {@code float16}, {@code half}, {@code bfloat16}, {@code float8_e4m3fn}, {@code
     * float8_e5m2}.
     */
    public static DType of(String label) {
        for (DType type : values()) {
            if (type.label().equals(label) || type.elsewhere.contains(label)) {
                return type;
            }
        }
        throw new IllegalArgumentException(
                "unknown dtype '%s': expected %s"
                        .formatted(
                                label,
                                Arrays.stream(values())
                                        .map(DType::label)
                                        .collect(Collectors.joining(", "))));
    }

    /** Whether elements are scaled: the 8-bit types. */
    public boolean isScaled() {
        return bytes == 1;
    }

    /**
     * The type in which the source systems leave a product: that of both operands, fp32 if they
     * differ or have scales.
     */
    public static DType promote(DType a, DType b) {
        return a == b && !a.isScaled() ? a : FP32;
    }

    /** The largest finite value. */
    public float max() {
        return max;
    }

    Fp8 fp8() {
        return this == E4M3 ? Fp8.E4M3 : Fp8.E5M2;
    }

    /** The element at {@code byteOffset}, widened. */
    public float read(MemorySegment data, long byteOffset) {
        return switch (this) {
            case FP32 -> data.get(FLOAT, byteOffset);
            case FP16 -> Float.float16ToFloat(data.get(SHORT, byteOffset));
            case BF16 -> bf16ToFloat(data.get(SHORT, byteOffset));
            case E4M3, E5M2 -> fp8().widen(data.get(ValueLayout.JAVA_BYTE, byteOffset));
        };
    }

    /** Rounds {@code value} to this type and stores it at {@code byteOffset}. */
    public void write(MemorySegment data, long byteOffset, float value) {
        switch (this) {
            case FP32 -> data.set(FLOAT, byteOffset, value);
            case FP16 -> data.set(SHORT, byteOffset, Float.floatToFloat16(value));
            case BF16 -> data.set(SHORT, byteOffset, floatToBf16(value));
            case E4M3, E5M2 -> data.set(ValueLayout.JAVA_BYTE, byteOffset, fp8().narrow(value));
        }
    }

    /** {@code value} rounded to this type and widened again. */
    public float round(float value) {
        return switch (this) {
            case FP32 -> value;
            case FP16 -> Float.float16ToFloat(Float.floatToFloat16(value));
            case BF16 -> bf16ToFloat(floatToBf16(value));
            case E4M3, E5M2 -> fp8().widen(fp8().narrow(value));
        };
    }

    /** The relative spacing of neighbouring normal values, from 2^-23 to 2^-2. */
    public double epsilon() {
        return epsilon;
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
