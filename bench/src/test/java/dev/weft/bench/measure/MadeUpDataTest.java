package dev.weft.bench.measure;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.gemm.Float64Oracle;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;

class MadeUpDataTest {

    /** As another program computed them from the same rule. */
    @Test
    void numbersAreThoseOfTheRule() {
        assertEquals(18000 * 0x1p-16f - 0.5f, MadeUpData.value(1, 0));
        assertEquals(54866 * 0x1p-16f - 0.5f, MadeUpData.value(1, 1));
        assertEquals(3310 * 0x1p-16f - 0.5f, MadeUpData.value(2, 12345));
        assertEquals(63603 * 0x1p-16f - 0.5f, MadeUpData.value(4, (1L << 32) + 7));
    }

    @Test
    void oneWrongElementIsNoticed() {
        Shape shape = new Shape(70, 50, 90);
        try (Arena arena = Arena.ofShared()) {
            Matrix a = Matrix.allocate(arena, DType.FP32, shape.m(), shape.k());
            Matrix b = Matrix.allocate(arena, DType.FP32, shape.k(), shape.n());
            MadeUpData.fill(a, MadeUpData.A);
            MadeUpData.fill(b, MadeUpData.B);
            Matrix c = new Float64Oracle(a, b, false).golden(0, shape.m(), arena, rows -> {});
            ProductCheck.require("golden", a, b, c);
            double right = MadeUpData.checksum(c);
            MadeUpData.requireSame("itself", shape, DType.FP32, right, right);
            c.set(31, 17, c.get(31, 18));
            double wrong = MadeUpData.checksum(c);
            var failure =
                    assertThrows(
                            IllegalStateException.class,
                            () -> MadeUpData.requireSame("peer", shape, DType.FP32, right, wrong));
            assertTrue(failure.getMessage().contains("70 x 90 x 50"), failure.getMessage());
            assertThrows(
                    IllegalStateException.class,
                    () -> MadeUpData.requireSame("peer", shape, DType.FP32, right, Double.NaN));
            assertThrows(IllegalStateException.class, () -> ProductCheck.require("wrong", a, b, c));
        }
    }
}
