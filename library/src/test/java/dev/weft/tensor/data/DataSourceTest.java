package dev.weft.tensor.data;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class DataSourceTest {

    private static final DataSource NORMAL = new NormalData(11, 4);

    @ParameterizedTest
    @EnumSource(
            value = DType.class,
            names = {"FP32", "FP16", "BF16"})
    void anyRectangleEqualsThatPartOfTheWhole(DType type) {
        long seed = 99;
        Random random = new Random(seed);
        try (Arena arena = Arena.ofConfined()) {
            Matrix whole = Matrix.allocate(arena, type, 37, 23);
            NORMAL.fill(whole);
            for (int i = 0; i < 300; i++) {
                long row = random.nextLong(37);
                long col = random.nextLong(23);
                long rows = random.nextLong(38 - row);
                long cols = random.nextLong(24 - col);
                Matrix part = Matrix.allocate(arena, type, rows, cols);
                NORMAL.fill(part, row, col, 23);
                assertTrue(
                        part.bitwiseEquals(whole.block(row, rows, col, cols)),
                        "seed " + seed + ", case " + i);
            }
        }
    }

    @Test
    void threadsMayFillRowsOfOneMatrix() throws InterruptedException, ExecutionException {
        try (Arena arena = Arena.ofShared();
                ExecutorService pool = Executors.newFixedThreadPool(3)) {
            Matrix expected = Matrix.allocate(arena, DType.FP16, 300, 50);
            Matrix actual = Matrix.allocate(arena, DType.FP16, 300, 50);
            NORMAL.fill(expected);
            Future<?>[] parts = new Future<?>[3];
            for (int t = 0; t < parts.length; t++) {
                long first = t * 100;
                parts[t] = pool.submit(() -> NORMAL.fill(actual.rows(first, 100), first, 0, 50));
            }
            for (Future<?> part : parts) {
                part.get();
            }
            assertTrue(actual.bitwiseEquals(expected));
        }
    }

    @Test
    void valuesAreRoundedOnceToTheType() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix matrix = Matrix.allocate(arena, DType.BF16, 2, 3);
            NORMAL.fill(matrix, 1L << 40, 0, 3);
            assertEquals(DType.BF16.round(NORMAL.value((1L << 40) * 3 + 4)), matrix.get(1, 1));
        }
    }

    @Test
    void rectanglesOutsideAreRefused() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix matrix = Matrix.allocate(arena, DType.FP32, 2, 3);
            long[][] outside = {
                {-1, 0, 3},
                {0, -1, 3},
                {0, 0, 2},
                {0, 1, 3},
                {0, 0, -1},
                {Long.MAX_VALUE, 0, 3},
                {Long.MAX_VALUE / 3 - 1, 0, 3},
                {0, Long.MAX_VALUE, 3},
            };
            for (long[] at : outside) {
                String message =
                        assertThrows(
                                        IllegalArgumentException.class,
                                        () -> NORMAL.fill(matrix, at[0], at[1], at[2]))
                                .getMessage();
                assertTrue(message.contains("row " + at[0] + " and column " + at[1]), message);
            }
            Matrix empty = Matrix.allocate(arena, DType.FP32, 0, 0);
            NORMAL.fill(empty);
        }
    }
}
