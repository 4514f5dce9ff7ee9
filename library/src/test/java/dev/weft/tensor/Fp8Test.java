package dev.weft.tensor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class Fp8Test {

    private static final int PATTERNS = 256;

    /** What the Open Compute Project's table says: sign, exponent, mantissa. */
    private static double defined(Fp8 format, int bits) {
        int mantissaBits = format == Fp8.E4M3 ? 3 : 2;
        int bias = format == Fp8.E4M3 ? 7 : 15;
        int exponent = (bits & 0x7F) >> mantissaBits;
        int mantissa = bits & (1 << mantissaBits) - 1;
        double fraction = (double) mantissa / (1 << mantissaBits);
        double value =
                exponent == 0
                        ? fraction * Math.pow(2, 1 - bias)
                        : (1 + fraction) * Math.pow(2, exponent - bias);
        if (format == Fp8.E4M3 && (bits & 0x7F) == 0x7F) {
            value = Double.NaN;
        }
        if (format == Fp8.E5M2 && exponent == 31) {
            value = mantissa == 0 ? Double.POSITIVE_INFINITY : Double.NaN;
        }
        return bits >= 0x80 ? -value : value;
    }

    @ParameterizedTest
    @EnumSource(Fp8.class)
    void everyPatternHasTheValueOfTheTableAndComesBack(Fp8 format) {
        for (int bits = 0; bits < PATTERNS; bits++) {
            float value = format.widen((byte) bits);
            assertEquals(defined(format, bits), value, Integer.toHexString(bits));
            if (Float.isNaN(value)) {
                assertTrue(Float.isNaN(format.widen(format.narrow(value))));
            } else if (Float.isFinite(value)) {
                assertEquals((byte) bits, format.narrow(value), Integer.toHexString(bits));
            }
        }
    }

    @ParameterizedTest
    @EnumSource(Fp8.class)
    void roundingIsToNearestWithTiesToEven(Fp8 format) {
        for (int bits = 0; format.widen((byte) bits) < DType.valueOf(format.name()).max(); bits++) {
            float below = format.widen((byte) bits);
            float above = format.widen((byte) (bits + 1));
            float middle = (below + above) / 2;
            byte even = (byte) (bits % 2 == 0 ? bits : bits + 1);
            assertEquals(even, format.narrow(middle), "tie " + middle);
            assertEquals((byte) bits, format.narrow(Math.nextDown(middle)));
            assertEquals((byte) (bits + 1), format.narrow(Math.nextUp(middle)));
            assertEquals((byte) (even | 0x80), format.narrow(-middle));
        }
    }

    @ParameterizedTest
    @EnumSource(Fp8.class)
    void whatIsTooLargeBecomesTheLargest(Fp8 format) {
        float[] large = {
            DType.valueOf(format.name()).max(),
            DType.valueOf(format.name()).max() * 1.5f,
            1e30f,
            Float.POSITIVE_INFINITY
        };
        for (float value : large) {
            assertEquals(
                    DType.valueOf(format.name()).max(),
                    format.widen(format.narrow(value)),
                    "of " + value);
            assertEquals(
                    -DType.valueOf(format.name()).max(),
                    format.widen(format.narrow(-value)),
                    "of " + -value);
        }
        assertEquals(0, format.narrow(Float.MIN_VALUE));
        assertEquals((byte) 0x80, format.narrow(-Float.MIN_VALUE));
    }
}
