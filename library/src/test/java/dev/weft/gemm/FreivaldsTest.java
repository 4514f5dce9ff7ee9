package dev.weft.gemm;

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
import java.util.Random;
import org.junit.jupiter.api.Test;

class FreivaldsTest {

    private static final int ROUNDS = 8;

    @Test
    void rightProductsPassWhateverTheSigns() {
        for (DType dtype : DType.UNSCALED) {
            for (boolean transposed : new boolean[] {false, true}) {
                Random random = new Random(31);
                try (Arena arena = Arena.ofConfined()) {
                    Matrix a = normal(arena, dtype, 33, 1100, random);
                    Matrix b = normalB(arena, dtype, 1100, 70, transposed, random);
                    for (DType out : DType.UNSCALED) {
                        Matrix c = naive(arena, a, b, transposed, out);
                        for (long seed = 0; seed < 10; seed++) {
                            Freivalds.Result result =
                                    Freivalds.check(
                                            new Float64Oracle(a, b, transposed), c, ROUNDS, seed);
                            assertTrue(result.accepted(), dtype + ", seed " + seed + ": " + result);
                        }
                    }
                }
            }
        }
    }

    @Test
    void oneWrongElementIsFoundInARoundWithEverySeed() {
        Random random = new Random(32);
        try (Arena arena = Arena.ofShared()) {
            Matrix a = normal(arena, DType.FP32, 90, 256, random);
            Matrix b = normal(arena, DType.FP32, 256, 128, random);
            Matrix c = naive(arena, a, b, false, DType.FP32);
            double magnitude = GemmCases.float64(a, b, false, true)[57 * 128 + 111];
            float before = c.get(57, 111);
            // The documented reach: some 12 sqrt(N) times the element's own bound, twice.
            double wrong = 25 * Math.sqrt(128) * ErrorBound.relative(256) * magnitude;
            assertTrue(wrong < 2, "a wrong element far below the size of a right one: " + wrong);
            for (long seed = 0; seed < 100; seed++) {
                c.set(57, 111, (float) (before + (seed % 2 == 0 ? wrong : -wrong)));
                Freivalds.Result result =
                        Freivalds.check(new Float64Oracle(a, b, false), c, 1, seed);
                assertFalse(result.accepted(), "seed " + seed + ": " + result);
                assertEquals(57, result.worstRow());
            }
        }
    }

    @Test
    void exchangedElementsRowsAndColumnsAreFound() {
        for (long seed = 0; seed < 20; seed++) {
            Random random = new Random(seed);
            try (Arena arena = Arena.ofConfined()) {
                Matrix a = normal(arena, DType.BF16, 20, 64, random);
                Matrix b = normalB(arena, DType.BF16, 64, 48, true, random);
                int[][] exchanges = {{3, 4, 3, 9}, {3, 4, 8, 4}};
                for (int[] x : exchanges) {
                    Matrix c = naive(arena, a, b, true, DType.FP32);
                    float first = c.get(x[0], x[1]);
                    c.set(x[0], x[1], c.get(x[2], x[3]));
                    c.set(x[2], x[3], first);
                    Freivalds.Result result =
                            Freivalds.check(new Float64Oracle(a, b, true), c, 32, seed);
                    assertFalse(result.accepted(), "seed " + seed + ": " + result);
                    assertTrue(
                            result.worstRow() == x[0] || result.worstRow() == x[2],
                            "seed " + seed + ": " + result);
                }
            }
        }
    }

    @Test
    void notANumberAndInfinityAreWrong() {
        Random random = new Random(33);
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = normal(arena, DType.FP32, 5, 6, random);
            Matrix b = normal(arena, DType.FP32, 6, 7, random);
            for (float value : new float[] {Float.NaN, Float.NEGATIVE_INFINITY}) {
                Matrix c = naive(arena, a, b, false, DType.FP32);
                c.set(2, 2, value);
                Freivalds.Result result =
                        Freivalds.check(new Float64Oracle(a, b, false), c, ROUNDS, 1);
                assertFalse(result.accepted());
                assertEquals(2, result.worstRow());
                assertTrue(
                        Freivalds.check(
                                        new Float64Oracle(a, b, false),
                                        c,
                                        ROUNDS,
                                        1,
                                        row -> row != 2)
                                .accepted());
                assertFalse(
                        Freivalds.check(
                                        new Float64Oracle(a, b, false),
                                        c,
                                        ROUNDS,
                                        1,
                                        row -> row == 2)
                                .accepted());
            }
        }
    }

    @Test
    void zerosAndEmptyProductsPass() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = Matrix.allocate(arena, DType.FP32, 3, 4);
            Matrix b = Matrix.allocate(arena, DType.FP32, 4, 5);
            Matrix c = Matrix.allocate(arena, DType.FP32, 3, 5);
            assertTrue(Freivalds.check(new Float64Oracle(a, b, false), c, ROUNDS, 1).accepted());
            Matrix empty = Matrix.allocate(arena, DType.FP32, 0, 5);
            Freivalds.Result none =
                    Freivalds.check(new Float64Oracle(a.rows(0, 0), b, false), empty, ROUNDS, 1);
            assertTrue(none.accepted());
            assertEquals(-1, none.worstRow());
        }
    }

    @Test
    void whatDoesNotFitIsRefused() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = Matrix.allocate(arena, DType.FP32, 3, 4);
            Matrix b = Matrix.allocate(arena, DType.FP32, 4, 5);
            Matrix c = Matrix.allocate(arena, DType.FP32, 3, 5);
            assertThrows(
                    IllegalArgumentException.class,
                    () -> Freivalds.check(new Float64Oracle(a, b, true), c, ROUNDS, 1));
            assertThrows(
                    IllegalArgumentException.class,
                    () -> Freivalds.check(new Float64Oracle(a, b, false), a, ROUNDS, 1));
            assertThrows(
                    IllegalArgumentException.class,
                    () -> Freivalds.check(new Float64Oracle(a, b, false), c, 0, 1));
            assertThrows(
                    IllegalArgumentException.class,
                    () -> Freivalds.check(new Float64Oracle(a, b, false), c, 65, 1));
        }
    }
}
