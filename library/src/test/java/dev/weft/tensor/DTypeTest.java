package dev.weft.tensor;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.lang.foreign.MemorySegment;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class DTypeTest {

    private static final int PATTERNS = 1 << 16;
    private static final int SIGN = 0x8000;

    @ParameterizedTest
    @CsvSource({
        "float32, FP32",
        "float16, FP16",
        "half, FP16",
        "bfloat16, BF16",
        "float8_e4m3fn, E4M3",
        "float8_e5m2, E5M2"
    })
    void namesOfNumPyAndPyTorchAreKnown(String name, DType type) {
        assertSame(type, DType.of(name));
    }

    @Test
    void labelsNameTheTypes() {
        for (DType type : DType.values()) {
            assertSame(type, DType.of(type.label()));
        }
        assertEquals("bf16", DType.BF16.label());
        String message =
                assertThrows(IllegalArgumentException.class, () -> DType.of("FP64")).getMessage();
        assertEquals("unknown dtype 'FP64': expected fp32, fp16, bf16, e4m3, e5m2", message);
    }

    @Test
    void mixturesPromoteToFp32() {
        for (DType a : DType.values()) {
            for (DType b : DType.values()) {
                boolean same = a == b && a.bytes() > 1;
                assertSame(same ? a : DType.FP32, DType.promote(a, b), a + " and " + b);
            }
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = DType.class,
            names = {"FP16", "BF16"})
    void every16BitPatternSurvivesWideningAndNarrowing(DType type) {
        int quietBit = type == DType.FP16 ? 0x0200 : 0x0040;
        for (int bits = 0; bits < PATTERNS; bits++) {
            float value = widen(type, bits);
            int back = narrow(type, value);
            if (Float.isNaN(value)) {
                // A signalling NaN may become a quiet one; its sign and payload stay.
                assertEquals(bits | quietBit, back | quietBit, Integer.toHexString(bits));
            } else {
                assertEquals(bits, back, Integer.toHexString(bits));
                assertEquals(definedValue(type, bits), value, Integer.toHexString(bits));
            }
            assertEquals(isNaN(type, bits), Float.isNaN(value), Integer.toHexString(bits));
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = DType.class,
            names = {"FP16", "BF16"})
    void roundingIsToNearestWithTiesToEvenAroundEveryValue(DType type) {
        for (int bits = 0; bits < infinity(type); bits++) {
            double value = definedValue(type, bits);
            double next = definedOrNextPower(type, bits + 1);
            float middle = (float) ((value + next) / 2);
            assertEquals((value + next) / 2, middle, "a tie is exact in fp32");
            for (float v :
                    new float[] {
                        (float) value,
                        Math.nextUp((float) value),
                        Math.nextDown(middle),
                        middle,
                        Math.nextUp(middle)
                    }) {
                checkNearest(type, v);
                checkNearest(type, -v);
            }
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = DType.class,
            names = {"FP16", "BF16"})
    void roundingIsToNearestForRandomFloats(DType type) {
        long seed = 20250611;
        Random random = new Random(seed);
        for (int i = 0; i < 1_000_000; i++) {
            float value = Float.intBitsToFloat(random.nextInt());
            if (!Float.isNaN(value)) {
                checkNearest(type, value);
            }
        }
    }

    @Test
    void extremesRoundAsDefined() {
        assertEquals(65504f, DType.FP16.round(65519.996f));
        assertEquals(Float.POSITIVE_INFINITY, DType.FP16.round(65520f));
        assertEquals(Float.NEGATIVE_INFINITY, DType.FP16.round(-65520f));
        assertEquals(0x1p-24f, DType.FP16.round(0x1.000002p-25f));
        assertEquals(0f, DType.FP16.round(0x1p-25f));
        assertEquals(Float.POSITIVE_INFINITY, DType.BF16.round(Float.MAX_VALUE));
        assertEquals(0x1.fep127f, DType.BF16.round(0x1.fefffep127f));
        assertEquals(0x1p-133f, DType.BF16.round(0x1p-133f));
        assertEquals(0f, DType.BF16.round(0x1p-134f));
        assertEquals(-0f, DType.BF16.round(-Float.MIN_VALUE));
        assertEquals(-0f, DType.FP16.round(-Float.MIN_VALUE));
        assertEquals(Float.MIN_VALUE, DType.FP32.round(Float.MIN_VALUE));
    }

    @Test
    void everyNaNStaysNaN() {
        long seed = 7;
        Random random = new Random(seed);
        for (int i = 0; i < 100_000; i++) {
            int bits = 0x7F800000 | random.nextInt() & 0x807FFFFF;
            // The payloads that vanish when cut to 16 bits are the dangerous ones.
            bits = i % 2 == 0 ? bits & 0xFF80FFFF | 1 : bits | 1;
            float nan = Float.intBitsToFloat(bits);
            for (DType type : DType.values()) {
                assertTrue(Float.isNaN(type.round(nan)), type + " " + Integer.toHexString(bits));
            }
        }
    }

    @ParameterizedTest
    @EnumSource(DType.class)
    void memoryIsLittleEndianAndNeedsNoAlignment(DType type) {
        byte[] bytes = new byte[8];
        MemorySegment segment = MemorySegment.ofArray(bytes);
        type.write(segment, 1, -1.5f);
        byte[] expected =
                switch (type) {
                    case FP32 -> new byte[] {0, 0, 0, (byte) 0xC0, (byte) 0xBF, 0, 0, 0};
                    case FP16 -> new byte[] {0, 0, (byte) 0xBE, 0, 0, 0, 0, 0};
                    case BF16 -> new byte[] {0, (byte) 0xC0, (byte) 0xBF, 0, 0, 0, 0, 0};
                    case E4M3 -> new byte[] {0, (byte) 0xBC, 0, 0, 0, 0, 0, 0};
                    case E5M2 -> new byte[] {0, (byte) 0xBE, 0, 0, 0, 0, 0, 0};
                };
        assertArrayEquals(expected, bytes);
        assertEquals(-1.5f, type.read(segment, 1));
    }

    @ParameterizedTest
    @EnumSource(DType.class)
    void epsilonIsTheGapAboveOne(DType type) {
        assertEquals((float) (1 + type.epsilon()), type.round((float) (1 + type.epsilon())));
        assertEquals(1f, type.round((float) (1 + type.epsilon() / 2)));
    }

    private static float widen(DType type, int bits) {
        MemorySegment segment = MemorySegment.ofArray(new byte[2]);
        segment.set(DType.SHORT, 0, (short) bits);
        return type.read(segment, 0);
    }

    private static int narrow(DType type, float value) {
        MemorySegment segment = MemorySegment.ofArray(new byte[2]);
        type.write(segment, 0, value);
        return segment.get(DType.SHORT, 0) & 0xFFFF;
    }

    private static int mantissaBits(DType type) {
        return type == DType.FP16 ? 10 : 7;
    }

    private static int infinity(DType type) {
        return type == DType.FP16 ? 0x7C00 : 0x7F80;
    }

    private static boolean isNaN(DType type, int bits) {
        return (bits & ~SIGN) > infinity(type);
    }

    /** What IEEE 754 says these bits mean, from sign, exponent and mantissa. */
    private static double definedValue(DType type, int bits) {
        double magnitude = definedOrNextPower(type, bits & ~SIGN);
        if ((bits & ~SIGN) == infinity(type)) {
            magnitude = Double.POSITIVE_INFINITY;
        }
        return bits >= SIGN ? -magnitude : magnitude;
    }

    /** As above, but infinity counts as the next power of two, which is where rounding sees it. */
    private static double definedOrNextPower(DType type, int bits) {
        int mantissaBits = mantissaBits(type);
        int exponent = bits >> mantissaBits;
        int mantissa = bits & (1 << mantissaBits) - 1;
        int bias = type == DType.FP16 ? 15 : 127;
        return exponent == 0
                ? Math.scalb((double) mantissa, 1 - bias - mantissaBits)
                : Math.scalb(
                        (double) (mantissa + (1 << mantissaBits)), exponent - bias - mantissaBits);
    }

    private static void checkNearest(DType type, float value) {
        int bits = narrow(type, value);
        int magnitudeBits = bits & ~SIGN;
        if ((bits >= SIGN) != (Float.floatToRawIntBits(value) < 0)) {
            fail(type + " changes the sign of " + Float.toHexString(value));
        }
        // Beyond the first value that rounds to infinity everything does; infinity itself included.
        double magnitude =
                Math.min(Math.abs((double) value), definedOrNextPower(type, infinity(type)));
        double error = Math.abs(magnitude - definedOrNextPower(type, magnitudeBits));
        double below =
                magnitudeBits == 0
                        ? Double.MAX_VALUE
                        : Math.abs(magnitude - definedOrNextPower(type, magnitudeBits - 1));
        double above =
                magnitudeBits >= infinity(type)
                        ? Double.MAX_VALUE
                        : Math.abs(magnitude - definedOrNextPower(type, magnitudeBits + 1));
        boolean even = (magnitudeBits & 1) == 0;
        double nearestOther = Math.min(below, above);
        if (error > nearestOther || (error == nearestOther && !even)) {
            fail(type + " of " + Float.toHexString(value) + " is " + Integer.toHexString(bits));
        }
    }
}
