package dev.weft.gemm;

import static dev.weft.gemm.GemmCases.assertSame;
import static dev.weft.gemm.GemmCases.float64;
import static dev.weft.gemm.GemmCases.naive;
import static dev.weft.gemm.GemmCases.normal;
import static dev.weft.gemm.GemmCases.normalB;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class Float64OracleTest {

    @Test
    void productsAreThoseOfExactArithmetic() {
        for (boolean transposed : new boolean[] {false, true}) {
            Random random = new Random(21);
            int rows = 67;
            int k = 1030;
            int n = 66;
            try (Arena arena = Arena.ofConfined()) {
                Matrix a = normal(arena, DType.FP16, rows, k, random);
                Matrix b = normalB(arena, DType.BF16, k, n, transposed, random);
                double[] products = float64(a, b, transposed, false);
                double[] magnitudes = float64(a, b, transposed, true);
                for (int i = 0; i < 40; i++) {
                    int row = i == 0 ? rows - 1 : random.nextInt(rows);
                    int col = i == 0 ? n - 1 : random.nextInt(n);
                    BigDecimal sum = BigDecimal.ZERO;
                    BigDecimal magnitude = BigDecimal.ZERO;
                    for (int x = 0; x < k; x++) {
                        float fromB = transposed ? b.get(col, x) : b.get(x, col);
                        BigDecimal term =
                                new BigDecimal(a.get(row, x)).multiply(new BigDecimal(fromB));
                        sum = sum.add(term);
                        magnitude = magnitude.add(term.abs());
                    }
                    double slack = 1e-13 * magnitude.doubleValue();
                    assertEquals(sum.doubleValue(), products[row * n + col], slack);
                    assertEquals(magnitude.doubleValue(), magnitudes[row * n + col], slack);
                }
            }
        }
    }

    @Test
    void oneElementBeyondTheBoundIsFoundAndNamed() {
        Random random = new Random(23);
        for (DType out : DType.UNSCALED) {
            try (Arena arena = Arena.ofShared()) {
                Matrix a = normal(arena, DType.FP32, 130, 100, random);
                Matrix b = normal(arena, DType.FP32, 100, 80, random);
                Matrix c = naive(arena, a, b, false, out);
                Float64Oracle oracle = new Float64Oracle(a, b, false);
                Deviation right = oracle.check(c);
                assertTrue(right.withinBound(), right.describe());
                assertEquals(130 * 80, right.elements());
                double[] magnitudes = float64(a, b, false, true);
                double allowed =
                        ErrorBound.relative(100) * magnitudes[97 * 80 + 71]
                                + ErrorBound.rounding(out, Math.abs(c.get(97, 71)));
                c.set(97, 71, (float) (c.get(97, 71) + 3 * allowed));
                Deviation wrong = oracle.check(c);
                assertFalse(wrong.withinBound(), wrong.describe());
                assertEquals(97, wrong.row());
                assertEquals(71, wrong.col());
                assertEquals(c.get(97, 71), wrong.actual());
                assertFalse(oracle.check(c, 3, 97).withinBound());
                assertTrue(oracle.check(c, 3, 98, 129).withinBound());
                assertEquals(240, oracle.check(c, 3, 98, 129).elements());
            }
        }
    }

    @Test
    void errorsAreMeasuredAgainstTheOracle() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = Matrix.copyOf(arena, new float[][] {{1, 2}, {3, 4}});
            Matrix b = Matrix.copyOf(arena, new float[][] {{5, 6}, {7, 8}});
            Matrix c = Matrix.copyOf(arena, new float[][] {{19, 22}, {43, 51}});
            Deviation deviation = new Float64Oracle(a, b, false).check(c);
            assertEquals(1, deviation.maxAbsErr());
            assertEquals(1 / (50 + 1e-9), deviation.relErr());
            assertEquals(50, deviation.expected());
            assertTrue(deviation.describe().contains("at [1, 1]"), deviation.describe());
        }
    }

    @Test
    void infinityIsRightOnlyWhereTheExactValueRoundsToIt() {
        float inf = Float.POSITIVE_INFINITY;
        float close = 65519.99f; // within the bound of K = 1 from where infinity begins
        float[] exact = {65519, close, close, 65520, 70000, -70000, 65504, 1};
        assertJudged(true, exact, 65504, 65504, inf, inf, inf, -inf, 65504, 1);
        assertJudged(false, exact, inf, 65504, inf, inf, inf, -inf, 65504, 1);
        assertJudged(false, exact, 65504, 65504, inf, inf, inf, -inf, inf, 1);
        assertJudged(false, exact, 65504, 65504, inf, inf, inf, inf, 65504, 1);
        assertJudged(false, exact, 65504, 65504, inf, inf, 65504, -inf, 65504, 1);
        assertJudged(false, exact, 65504, 65504, inf, inf, inf, -inf, 65504, Float.NaN);
    }

    private static void assertJudged(boolean right, float[] exact, float... found) {
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = Matrix.copyOf(arena, new float[][] {{1}});
            Matrix b = Matrix.copyOf(arena, new float[][] {exact});
            Matrix c = Matrix.allocate(arena, DType.FP16, 1, exact.length);
            for (int i = 0; i < found.length; i++) {
                c.set(0, i, found[i]);
            }
            Deviation deviation = new Float64Oracle(a, b, false).check(c);
            assertEquals(right, deviation.withinBound(), deviation.describe());
        }
    }

    @Test
    void sumsThatCanOverflowMayBeInfiniteAndNoOthers() {
        float inf = Float.POSITIVE_INFINITY;
        float nan = Float.NaN;
        for (DType out : new DType[] {DType.FP32, DType.BF16}) {
            float[] over = {3e38f, 3e38f, 0, 0};
            assertMayBe(over, out, inf);
            assertMayNotBe(over, out, -inf, nan, 0, 3e38f);
            float[] below = {-3e38f, -3e38f, 0, 0};
            assertMayBe(below, out, -inf);
            assertMayNotBe(below, out, inf, nan, 0);
            // In some orders the sum overflows on its way, in others it does not.
            float[] there = {3e38f, 3e38f, -3e38f, -3e38f};
            assertMayBe(there, out, inf, -inf, nan, 0);
            assertMayNotBe(there, out, 1e38f, -1e38f);
            float[] oneWay = {3e38f, 3e38f, -3e38f, 0};
            assertMayBe(oneWay, out, inf, out.round(3e38f));
            assertMayNotBe(oneWay, out, -inf, nan, 0);
            // No order of these overflows.
            float[] within = {3e38f, -3e38f, 2e37f, 1};
            assertMayBe(within, out, out.round(2e37f));
            assertMayNotBe(within, out, inf, -inf, nan);
            assertMayNotBe(new float[] {1e38f, 1e38f, 0, 0}, out, inf, -inf, nan);
            assertMayNotBe(new float[] {1, 2, 3, 4}, out, inf, -inf, nan);
        }
    }

    private static void assertMayBe(float[] terms, DType out, float... found) {
        for (float value : found) {
            Deviation deviation = sumOf(terms, out, value);
            assertTrue(deviation.withinBound(), out + ": " + deviation.describe());
            assertEquals(Float.isFinite(value) ? 0 : 1, deviation.notFinite());
            assertTrue(Double.isFinite(deviation.maxAbsErr()), deviation.describe());
            assertTrue(Double.isFinite(deviation.relErr()), deviation.describe());
        }
    }

    private static void assertMayNotBe(float[] terms, DType out, float... found) {
        for (float value : found) {
            Deviation deviation = sumOf(terms, out, value);
            assertFalse(deviation.withinBound(), out + ": " + deviation.describe());
            assertEquals(0, deviation.notFinite());
        }
    }

    private static Deviation sumOf(float[] terms, DType out, float found) {
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = Matrix.copyOf(arena, new float[][] {terms});
            Matrix b = Matrix.copyOf(arena, new float[][] {{1}, {1}, {1}, {1}});
            Matrix c = Matrix.allocate(arena, out, 1, 1);
            c.set(0, 0, found);
            return new Float64Oracle(a, b, false).check(c);
        }
    }

    @Test
    void notANumberMustStayOne() {
        try (Arena arena = Arena.ofConfined()) {
            float inf = Float.POSITIVE_INFINITY;
            Matrix a = Matrix.copyOf(arena, new float[][] {{Float.NaN, 1}, {inf, 1}, {inf, -inf}});
            Matrix b = Matrix.copyOf(arena, new float[][] {{1}, {1}});
            Float64Oracle oracle = new Float64Oracle(a, b, false);
            float nan = Float.NaN;
            Matrix right = Matrix.copyOf(arena, new float[][] {{nan}, {inf}, {nan}});
            assertTrue(oracle.check(right).withinBound());
            Matrix wrong = Matrix.copyOf(arena, new float[][] {{nan}, {inf}, {0}});
            assertEquals(2, oracle.check(wrong).row());
            assertFalse(oracle.check(wrong).withinBound());
        }
    }

    @Test
    void subnormalResultsAreJudgedByTheirOwnSpacing() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = Matrix.copyOf(arena, new float[][] {{0x1p-10f}});
            Matrix b = Matrix.copyOf(arena, new float[][] {{0x1.8p-15f, 0x1p-16f}});
            Float64Oracle oracle = new Float64Oracle(a, b, false);
            Matrix c = Matrix.allocate(arena, DType.FP16, 1, 2);
            c.set(0, 0, 0x1p-24f);
            assertTrue(oracle.check(c).withinBound(), oracle.check(c).describe());
            c.set(0, 0, 0x1p-23f);
            assertFalse(oracle.check(c).withinBound(), oracle.check(c).describe());
        }
    }

    @Test
    void goldenIsTheRoundedProductStripByStrip() {
        Random random = new Random(24);
        for (Arena arena : new Arena[] {Arena.ofShared(), Arena.ofConfined()}) {
            try (arena) {
                Matrix a = normal(arena, DType.BF16, 1500, 9, random);
                Matrix b = normalB(arena, DType.BF16, 9, 70, true, random);
                Float64Oracle oracle = new Float64Oracle(a, b, true);
                List<Long> steps = new ArrayList<>();
                Matrix golden = oracle.golden(1, 1498, arena, steps::add);
                double[] products = float64(a, b, true, false);
                Matrix expected = Matrix.allocate(arena, DType.FP32, 1498, 70);
                for (int row = 0; row < 1498; row++) {
                    for (int col = 0; col < 70; col++) {
                        expected.set(row, col, (float) products[(row + 1) * 70 + col]);
                    }
                }
                assertSame(expected, golden, "golden");
                assertEquals(1498, steps.getLast());
                assertEquals(steps.stream().sorted().distinct().toList(), steps);
            }
        }
    }

    @Test
    void whatDoesNotFitIsRefused() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = Matrix.allocate(arena, DType.FP32, 3, 4);
            Matrix b = Matrix.allocate(arena, DType.FP32, 4, 5);
            assertThrows(IllegalArgumentException.class, () -> new Float64Oracle(a, b, true));
            Float64Oracle oracle = new Float64Oracle(a, b, false);
            assertThrows(IllegalArgumentException.class, () -> oracle.check(b));
            Matrix c = Matrix.allocate(arena, DType.FP32, 3, 5);
            assertThrows(IllegalArgumentException.class, () -> oracle.check(c, 3));
            assertThrows(
                    IllegalArgumentException.class, () -> oracle.golden(2, 2, arena, rows -> {}));
        }
    }
}
