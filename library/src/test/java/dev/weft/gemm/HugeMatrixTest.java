package dev.weft.gemm;

import static dev.weft.gemm.GemmCases.assertSame;
import static dev.weft.gemm.GemmCases.naive;
import static dev.weft.gemm.GemmCases.normal;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Matrices of more elements than an int can count. */
@Tag("long")
class HugeMatrixTest {

    private static final long INT_LIMIT = 1L << 31;

    @Test
    void rowsOfAPastTheIntLimit() throws IOException {
        long k = 4100;
        long rows = INT_LIMIT / k + 40;
        int n = 9;
        assumeMemory(2 * rows * k + 40 * rows + (1L << 30));
        try (Arena arena = Arena.ofShared()) {
            Matrix a = repeatedNormal(arena, DType.FP16, rows, k);
            assertTrue(a.rows() * a.cols() > INT_LIMIT);
            Matrix b = normal(arena, DType.FP32, k, n, new Random(42));
            Gemm gemm = Gemms.portable();
            Matrix c = GemmCases.product(gemm, arena, a, b, false, DType.FP32);
            long atLimit = INT_LIMIT / k;
            for (long row : new long[] {0, 1, atLimit / 2, atLimit - 1, atLimit, rows - 1}) {
                Matrix expected = naive(arena, a.rows(row, 1), b, false, DType.FP32);
                assertSame(expected, c.rows(row, 1), "row " + row);
            }
            Gemm scalar = new TiledGemm(new ScalarTiles());
            Matrix tail = Matrix.allocate(arena, DType.FP32, 30, n);
            Scratch scratch = scalar.scratch(k, n, arena);
            scalar.multiply(a, rows - 30, 30, scalar.pack(b, false, arena), tail, 0, scratch);
            assertTrue(tail.bitwiseEquals(c.rows(rows - 30, 30)));
        }
    }

    @Test
    void elementsOfBPastTheIntLimit() throws IOException {
        long k = 70_001;
        long n = INT_LIMIT / k + 50;
        assumeMemory(6 * k * (n + 64) + (1L << 30));
        try (Arena arena = Arena.ofShared()) {
            Matrix b = repeatedNormal(arena, DType.BF16, k, n);
            Gemm gemm = Gemms.portable();
            PackedB packed = gemm.pack(b, false, arena);
            assertTrue(packed.bytes() > 4 * INT_LIMIT);
            Matrix a = normal(arena, DType.BF16, 3, k, new Random(43));
            Matrix c = Matrix.allocate(arena, DType.FP32, 3, n);
            gemm.multiply(a, 0, 3, packed, c, 0, gemm.scratch(k, n, arena));
            for (long col : new long[] {0, 47, 48, n / 2, n - 49, n - 2, n - 1}) {
                Matrix expected = naive(arena, a, b.block(0, k, col, 1), false, DType.FP32);
                assertSame(expected, c.block(0, 3, col, 1), "column " + col);
            }
        }
    }

    /** Normal values that repeat after a number of elements that no row length divides. */
    private static Matrix repeatedNormal(Arena arena, DType dtype, long rows, long cols) {
        long period = 1_000_003;
        Matrix values = normal(arena, dtype, 1, period, new Random(41));
        Matrix matrix = Matrix.allocate(arena, dtype, rows, cols);
        MemorySegment data = matrix.data();
        long periodBytes = values.elementBytes();
        for (long done = 0; done < matrix.elementBytes(); done += periodBytes) {
            long count = Math.min(periodBytes, matrix.elementBytes() - done);
            MemorySegment.copy(values.data(), 0, data, done, count);
        }
        assertEquals(values.get(0, 5), matrix.get((period + 5) / cols, (period + 5) % cols));
        return matrix;
    }

    private static void assumeMemory(long bytes) throws IOException {
        Path meminfo = Path.of("/proc/meminfo");
        assumeTrue(Files.exists(meminfo), "free memory is unknown on this system");
        long available =
                Files.readAllLines(meminfo).stream()
                        .filter(line -> line.startsWith("MemAvailable:"))
                        .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) << 10)
                        .findFirst()
                        .orElse(0);
        assumeTrue(
                available >= bytes,
                () -> "needs " + (bytes >> 20) + " MiB of memory, has " + (available >> 20));
    }
}
