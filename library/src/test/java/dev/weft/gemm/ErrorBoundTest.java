package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

class ErrorBoundTest {

    @Test
    void roundingIsHalfTheGapAboveEveryValue() {
        for (int bits = 0; bits < 0x7BFF; bits++) {
            double value = Float.float16ToFloat((short) bits);
            double gap = Float.float16ToFloat((short) (bits + 1)) - value;
            assertEquals(gap / 2, ErrorBound.rounding(DType.FP16, value), "fp16 bits " + bits);
        }
        for (int bits = 0; bits < 0x7F7F; bits++) {
            double value = DType.bf16ToFloat((short) bits);
            double gap = DType.bf16ToFloat((short) (bits + 1)) - value;
            assertEquals(gap / 2, ErrorBound.rounding(DType.BF16, value), "bf16 bits " + bits);
        }
        for (DType type : new DType[] {DType.E4M3, DType.E5M2}) {
            try (Arena arena = Arena.ofConfined()) {
                Matrix all = Matrix.allocate(arena, type, 1, 256);
                for (int bits = 0; bits < 256; bits++) {
                    all.data().set(ValueLayout.JAVA_BYTE, bits, (byte) bits);
                }
                for (int bits = 0; all.get(0, bits) < type.max(); bits++) {
                    double value = all.get(0, bits);
                    double gap = all.get(0, bits + 1) - value;
                    assertEquals(gap / 2, ErrorBound.rounding(type, value), type + " " + bits);
                }
            }
            assertEquals(Double.POSITIVE_INFINITY, ErrorBound.overflowFrom(type));
        }
        for (float value : new float[] {0f, Float.MIN_VALUE, 0x1p-126f, 1f, 1.5f, 3e38f}) {
            double half = Math.ulp(value) / 2.0;
            assertEquals(half, ErrorBound.rounding(DType.FP32, value), "fp32 " + value);
        }
    }

    @Test
    void overflowBeginsHalfAUnitAboveTheLargestValue() {
        assertEquals(65520, ErrorBound.overflowFrom(DType.FP16));
        for (DType dtype : new DType[] {DType.FP16, DType.BF16}) {
            float limit = (float) ErrorBound.overflowFrom(dtype);
            assertTrue(Float.isInfinite(dtype.round(limit)), dtype + " at " + limit);
            assertTrue(Float.isFinite(dtype.round(Math.nextDown(limit))), dtype + " below");
        }
        double limit = ErrorBound.overflowFrom(DType.FP32);
        assertTrue(Float.isInfinite((float) limit));
        assertTrue(Float.isFinite((float) Math.nextDown(limit)));
    }

    @Test
    void theChainGrowsWithTheRootOfK() {
        assertEquals(2 * 32 * 0x1p-23, ErrorBound.relative(1024));
        assertEquals(2 * 32 * 0x1p-149, ErrorBound.underflow(1024));
    }
}
