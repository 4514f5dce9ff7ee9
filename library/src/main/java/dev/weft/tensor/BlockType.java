package dev.weft.tensor;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * How GGUF files hold neighbours in a row as one block: whole numbers of few bits with scales that
 * they share. Thread-safe.
 */
public enum BlockType {
    /** 4 bits and a scale. */
    Q4_0(2, 32, 18),
    /** 8 bits and a scale. */
    Q8_0(8, 32, 34),
    /** 2 bits; 16 neighbours share a scale and an offset of 4 bits each. */
    Q2_K(10, 256, 84),
    /** 4 bits; 32 neighbours share a scale and an offset of 6 bits each. */
    Q4_K(12, 256, 144),
    /** 5 bits, scaled as Q4_K. */
    Q5_K(13, 256, 176),
    /** 6 bits; 16 neighbours share a scale of 8 bits. */
    Q6_K(14, 256, 210),
    /** Signs, and one of 256 patterns of 8 magnitudes; 32 neighbours share a scale of 4 bits. */
    IQ2_XXS(16, 256, 66);

    /** Those that Weft multiplies as they are, and quantizes to. */
    public static final List<BlockType> MULTIPLIED = List.of(Q8_0, Q4_0, Q4_K);

    private final int number;
    private final int elements;
    private final int bytes;

    BlockType(int number, int elements, int bytes) {
        this.number = number;
        this.elements = elements;
        this.bytes = bytes;
    }

    /** Elements of a block. */
    public int elements() {
        return elements;
    }

    /** Bytes of a block. */
    public int bytes() {
        return bytes;
    }

    /** Bytes of a row of {@code cols} elements; refuses one that is not whole blocks. */
    public long rowBytes(long cols) {
        if (cols < 0 || cols % elements != 0) {
            throw new IllegalArgumentException(
                    "rows of %s elements in %s: expected a multiple of %s"
                            .formatted(cols, label(), elements));
        }
        return Math.multiplyExact(cols / elements, (long) bytes);
    }

    /** The name on the command line and in messages, such as {@code q4_k}. */
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** The type of {@link #MULTIPLIED} with this {@link #label()}. */
    public static BlockType of(String label) {
        for (BlockType type : MULTIPLIED) {
            if (type.label().equals(label)) {
                return type;
            }
        }
        throw new IllegalArgumentException(
                "unknown type of blocks '%s': expected %s"
                        .formatted(
                                label,
                                MULTIPLIED.stream()
                                        .map(BlockType::label)
                                        .collect(Collectors.joining(", "))));
    }

    /** Whether this is the {@link #label()} of a type of {@link #MULTIPLIED}. */
    public static boolean isLabel(String label) {
        return MULTIPLIED.stream().anyMatch(type -> type.label().equals(label));
    }

    /** The type with this number in GGUF files; null for others. */
    static BlockType ofNumber(int number) {
        return Arrays.stream(values())
                .filter(type -> type.number == number)
                .findFirst()
                .orElse(null);
    }

    int number() {
        return number;
    }

    /**
     * The values of the block at {@code from}, each rounded once to fp32, into {@code to} from
     * {@code at} on.
     */
    void decode(MemorySegment data, long from, float[] to, int at) {
        switch (this) {
            case Q8_0, Q4_0 -> {
                float d = half(data, from);
                for (int i = 0; i < elements; i++) {
                    to[at + i] = d * number(data, from, i);
                }
            }
            case Q2_K -> {
                float d = half(data, from + 80);
                float min = half(data, from + 82);
                for (int i = 0; i < elements; i++) {
                    int scales = at(data, from + i / 16);
                    int two = at(data, from + 16 + i / 128 * 32L + i % 32) >> i / 32 % 4 * 2 & 3;
                    to[at + i] = d * (scales & 15) * two - min * (scales >> 4);
                }
            }
            case Q4_K -> {
                for (int i = 0; i < elements; i++) {
                    to[at + i] = nibble(data, from + 16, i);
                }
                scale(data, from, to, at);
            }
            case Q5_K -> {
                for (int i = 0; i < elements; i++) {
                    int fifth = at(data, from + 16 + i % 32) >> i / 32 & 1;
                    to[at + i] = nibble(data, from + 48, i) | fifth << 4;
                }
                scale(data, from, to, at);
            }
            case Q6_K -> {
                float d = half(data, from + 208);
                for (int i = 0; i < elements; i++) {
                    int low = at(data, from + i / 128 * 64L + i % 64) >> i / 64 % 2 * 4 & 15;
                    int high = at(data, from + 128 + i / 128 * 32L + i % 32) >> i / 32 % 4 * 2 & 3;
                    byte scale = data.get(ValueLayout.JAVA_BYTE, from + 192 + i / 16);
                    to[at + i] = d * scale * ((low | high << 4) - 32);
                }
            }
            case IQ2_XXS -> Iq2Grid.decode(data, from, to, at);
        }
    }

    /** The number of element {@code i} of a Q4_K or Q5_K block without its fifth bit. */
    private static int nibble(MemorySegment data, long numbers, int i) {
        return at(data, numbers + i / 64 * 32L + i % 32) >> i / 32 % 2 * 4 & 15;
    }

    /** Turns the numbers of a Q4_K or Q5_K block into values. */
    private static void scale(MemorySegment data, long from, float[] to, int at) {
        float d = half(data, from);
        float dOfOffsets = half(data, from + 2);
        for (int j = 0; j < 8; j++) {
            float scale = d * scaleOf(data, from, j);
            float min = dOfOffsets * offsetOf(data, from, j);
            // Products of at most 22 bits are exact.
            for (int i = at + 32 * j; i < at + 32 * (j + 1); i++) {
                to[i] = scale * to[i] - min;
            }
        }
    }

    /**
     * The whole number of element {@code i} of the block at {@code from}, which its scale
     * multiplies; for a type of {@link #MULTIPLIED}.
     */
    public int number(MemorySegment data, long from, int i) {
        return switch (this) {
            case Q8_0 -> data.get(ValueLayout.JAVA_BYTE, from + 2 + i);
            case Q4_0 -> (at(data, from + 2 + i % 16) >> i / 16 * 4 & 15) - 8;
            case Q4_K -> nibble(data, from + 16, i);
            default -> throw new IllegalArgumentException("numbers of " + label());
        };
    }

    /** The scale of neighbours {@code j}, 0 to 7, of a Q4_K or Q5_K block: 0 to 63. */
    public static int scaleOf(MemorySegment data, long from, int j) {
        return j < 4
                ? at(data, from + 4 + j) & 63
                : at(data, from + 8 + j) & 15 | at(data, from + j) >> 6 << 4;
    }

    /** Their offset, likewise. */
    public static int offsetOf(MemorySegment data, long from, int j) {
        return j < 4
                ? at(data, from + 8 + j) & 63
                : at(data, from + 8 + j) >> 4 | at(data, from + 4 + j) >> 6 << 4;
    }

    /** Whether a block's values are finite numbers. */
    boolean isFinite(MemorySegment data, long from) {
        return switch (this) {
            case Q8_0, Q4_0 -> Float.isFinite(half(data, from));
            case Q4_K -> Float.isFinite(half(data, from)) && Float.isFinite(half(data, from + 2));
            default -> {
                float[] values = new float[elements];
                decode(data, from, values, 0);
                boolean finite = true;
                for (float value : values) {
                    finite &= Float.isFinite(value);
                }
                yield finite;
            }
        };
    }

    static float half(MemorySegment data, long at) {
        return Float.float16ToFloat(data.get(DType.SHORT, at));
    }

    static int at(MemorySegment data, long at) {
        return data.get(ValueLayout.JAVA_BYTE, at) & 0xFF;
    }
}
