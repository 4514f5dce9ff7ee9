package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Every value of a 16-bit type, and every rounding, at every position in a vector and after it. */
class VectorConverterTest {

    private static final int ALL_HALVES = 1 << 16;

    @Test
    void widensEveryHalf() {
        for (DType dtype : new DType[] {DType.FP16, DType.BF16}) {
            try (Arena arena = Arena.ofConfined()) {
                Matrix row = Matrix.allocate(arena, dtype, 1, ALL_HALVES);
                for (int i = 0; i < ALL_HALVES; i++) {
                    row.data().set(java.lang.foreign.ValueLayout.JAVA_SHORT, 2L * i, (short) i);
                }
                float[] target = new float[ALL_HALVES + 3];
                for (int from : new int[] {0, 1, 5}) {
                    int count = ALL_HALVES - from;
                    new VectorConverter(count).widen(row, 0, from, count, target, 3);
                    for (int i = 0; i < count; i++) {
                        int expected = Float.floatToRawIntBits(row.get(0, from + i));
                        assertEquals(
                                expected,
                                Float.floatToRawIntBits(target[3 + i]),
                                dtype + " number " + (from + i));
                    }
                }
            }
        }
    }

    @Test
    void narrowsRectanglesAsTheTypeRounds() {
        Random random = new Random(21);
        float[] sums = new float[4 + 6 * 70];
        for (int i = 0; i < sums.length; i++) {
            // Any bits: numbers of all sizes, infinities, NaNs.
            sums[i] = Float.intBitsToFloat(random.nextInt());
        }
        for (DType dtype : DType.values()) {
            for (int cols = 0; cols <= 70; cols++) {
                try (Arena arena = Arena.ofConfined()) {
                    Matrix c = Matrix.allocate(arena, dtype, 9, 80);
                    new VectorConverter(6 * 70).narrow(sums, 4, 70, 6, cols, c, 2, 5);
                    Matrix expected = Matrix.allocate(arena, dtype, 9, 80);
                    for (int row = 0; row < 6; row++) {
                        for (int col = 0; col < cols; col++) {
                            expected.set(2 + row, 5 + col, sums[4 + row * 70 + col]);
                        }
                    }
                    GemmCases.assertSame(expected, c, dtype + ", " + cols + " columns");
                }
            }
        }
    }
}
