package dev.weft.tensor;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tensor.data.DataSource;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class MatrixTest {

    private static final MemorySegment BYTES_48 = MemorySegment.ofArray(new byte[48]);

    @Test
    void aFreshMatrixIsZeroContiguousAndAligned() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix matrix = Matrix.allocate(arena, DType.BF16, 3, 5);
            assertEquals(30, matrix.data().byteSize());
            assertEquals(0, matrix.data().address() % 64);
            assertTrue(matrix.isContiguous());
            assertEquals("[3, 5] bf16", matrix.describe());
            for (long r = 0; r < 3; r++) {
                for (long c = 0; c < 5; c++) {
                    assertEquals(0f, matrix.get(r, c));
                }
            }
        }
    }

    @Test
    void copyOfTakesRowsOfEqualLength() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix matrix = Matrix.copyOf(arena, new float[][] {{1, 2, 3}, {4, 5, 6}});
            assertEquals(6f, matrix.get(1, 2));
            assertEquals(0, Matrix.copyOf(arena, new float[][] {}).rows());
            float[][] ragged = {{1, 2}, {3}};
            assertEquals(
                    "row 1 has 1 values, row 0 has 2",
                    assertThrows(IllegalArgumentException.class, () -> Matrix.copyOf(arena, ragged))
                            .getMessage());
        }
    }

    @Test
    void impossibleShapesAreRefusedWithTheirNumbers() {
        refused("matrix of -1 x 4", () -> Matrix.of(BYTES_48, DType.FP32, -1, 4));
        refused("matrix of -1 x -5", () -> Matrix.contiguousBytes(DType.FP32, -1, -5));
        refused("row pitch 3", () -> new Matrix(BYTES_48, DType.FP32, 2, 4, 3));
        refused("needs 60 bytes, the segment has 48", () -> Matrix.of(BYTES_48, DType.FP32, 3, 5));
        refused("64-bit", () -> Matrix.of(BYTES_48, DType.FP32, 1L << 40, 1L << 40));
        refused("64-bit", () -> Matrix.of(BYTES_48, DType.FP32, 1L << 31, 1L << 31));
        refused("64-bit", () -> Matrix.of(BYTES_48, DType.FP32, 0, 1L << 62));
        try (Arena arena = Arena.ofConfined()) {
            refused("matrix of 2 x -3", () -> Matrix.allocate(arena, DType.FP16, 2, -3));
        }
    }

    private static void refused(String part, Runnable action) {
        String message = assertThrows(IllegalArgumentException.class, action::run).getMessage();
        assertTrue(message.contains(part) && message.lines().count() == 1, message);
    }

    @Test
    void aPitchedMatrixNeedsNoGapAfterItsLastRow() {
        Matrix matrix = new Matrix(BYTES_48, DType.FP32, 3, 2, 5);
        assertEquals(48, matrix.offset(2, 2));
        assertFalse(matrix.isContiguous());
        assertTrue(matrix.rows(1, 1).isContiguous());
        assertEquals(24, matrix.elementBytes());
    }

    @Test
    void emptyMatricesAndViewsAreAllowed() {
        MemorySegment nothing = MemorySegment.ofArray(new byte[0]);
        assertEquals(0, Matrix.of(nothing, DType.FP32, 0, 7).elementBytes());
        assertEquals(0, Matrix.of(nothing, DType.FP32, 7, 0).elementBytes());
        Matrix matrix = Matrix.of(BYTES_48, DType.FP32, 3, 4);
        assertEquals(0, matrix.rows(3, 0).rows());
        assertEquals(0, matrix.block(0, 3, 4, 0).cols());
        matrix.rows(3, 0).copyFrom(matrix.rows(0, 0));
        assertTrue(matrix.rows(3, 0).bitwiseEquals(matrix.rows(1, 0)));
    }

    @ParameterizedTest
    @EnumSource(
            value = DType.class,
            names = {"FP32", "FP16", "BF16"})
    void viewsSeeTheElementsOfTheWhole(DType type) {
        long seed = 31;
        Random random = new Random(seed);
        try (Arena arena = Arena.ofConfined()) {
            for (int i = 0; i < 200; i++) {
                long rows = 1 + random.nextInt(9);
                long cols = 1 + random.nextInt(9);
                Matrix whole = Matrix.allocate(arena, type, rows, cols);
                index().fill(whole);
                long r0 = random.nextLong(rows);
                long c0 = random.nextLong(cols);
                Matrix block =
                        whole.block(
                                r0,
                                random.nextLong(rows - r0 + 1),
                                c0,
                                random.nextLong(cols - c0 + 1));
                for (long r = 0; r < block.rows(); r++) {
                    for (long c = 0; c < block.cols(); c++) {
                        assertEquals(
                                (r0 + r) * cols + c0 + c,
                                block.get(r, c),
                                "seed " + seed + ", " + i);
                    }
                }
                Matrix copy = Matrix.allocate(arena, type, block.rows(), block.cols());
                copy.copyFrom(block);
                assertTrue(copy.bitwiseEquals(block), "seed " + seed + ", " + i);
            }
        }
    }

    private static DataSource index() {
        return index -> index;
    }

    @Test
    void viewsOutsideAreRefused() {
        Matrix matrix = Matrix.of(BYTES_48, DType.FP32, 3, 4);
        assertThrows(IndexOutOfBoundsException.class, () -> matrix.rows(2, 2));
        assertThrows(IndexOutOfBoundsException.class, () -> matrix.rows(-1, 1));
        assertThrows(IndexOutOfBoundsException.class, () -> matrix.block(0, 1, 3, 2));
    }

    @Test
    void copyingLeavesTheGapsAlone() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix wide = Matrix.allocate(arena, DType.FP32, 3, 4);
            DataSource nines = index -> 9;
            nines.fill(wide);
            Matrix small = Matrix.copyOf(arena, new float[][] {{1, 2}, {3, 4}, {5, 6}});
            wide.block(0, 3, 1, 2).copyFrom(small);
            Matrix expected =
                    Matrix.copyOf(arena, new float[][] {{9, 1, 2, 9}, {9, 3, 4, 9}, {9, 5, 6, 9}});
            assertTrue(wide.bitwiseEquals(expected));
            refused("cannot copy [3, 2] fp32 into [3, 4] fp32", () -> wide.copyFrom(small));
        }
    }

    @Test
    void fillTakesValuesRowAfterRowAndRoundsThem() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix whole = Matrix.allocate(arena, DType.BF16, 3, 4);
            double[] next = {1};
            whole.block(1, 2, 1, 2).fill(() -> next[0] += 1 + 0x1p-20);
            float[][] expected = {{0, 0, 0, 0}, {0, 2, 3, 0}, {0, 4, 5, 0}};
            for (int row = 0; row < 3; row++) {
                for (int col = 0; col < 4; col++) {
                    assertEquals(expected[row][col], whole.get(row, col));
                }
            }
        }
    }

    @Test
    void equalityIsOfShapeTypeAndBits() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = Matrix.copyOf(arena, new float[][] {{1, 0}, {2, Float.NaN}});
            Matrix b = Matrix.copyOf(arena, new float[][] {{1, 0}, {2, Float.NaN}});
            assertTrue(a.bitwiseEquals(b));
            b.set(1, 0, 3);
            assertEquals(1, a.firstDifferentRow(b));
            b.set(0, 1, -0f);
            assertEquals(0, a.firstDifferentRow(b));
            assertFalse(a.bitwiseEquals(a.rows(0, 1)));
            assertFalse(
                    a.bitwiseEquals(Matrix.allocate(arena, DType.BF16, 2, 2)),
                    "another type is not equal");
        }
    }

    @Test
    void arraysGoInAndComeOut() {
        try (Arena arena = Arena.ofConfined()) {
            float[][] rows = {{1, 2, 3}, {4, 5, 6}};
            float[] flat = {1, 2, 3, 4, 5, 6};
            Matrix matrix = Matrix.copyOf(arena, rows);
            assertArrayEquals(flat, matrix.toArray());
            assertTrue(matrix.bitwiseEquals(Matrix.copyOf(arena, flat, 2, 3)));
            FloatBuffer direct = ByteBuffer.allocateDirect(32).asFloatBuffer();
            direct.put(9).put(flat).position(1).limit(7);
            assertTrue(matrix.bitwiseEquals(Matrix.copyOf(arena, direct, 2, 3)));
            assertEquals(6, direct.remaining(), "the buffer is left as it is");
            assertArrayEquals(new float[] {2, 3, 5, 6}, matrix.block(0, 2, 1, 2).toArray());
            assertArrayEquals(rows, matrix.toArrays());
            Matrix onHeap = Matrix.of(MemorySegment.ofArray(flat), DType.FP32, 3, 2);
            assertEquals(6, onHeap.get(2, 1));
            refused("6 values for [2, 2]: expected 4", () -> Matrix.copyOf(arena, flat, 2, 2));
        }
    }

    @Test
    void anotherTypeRoundsEachElementOnce() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix wide = Matrix.copyOf(arena, new float[][] {{9, 1 + 0x1p-9f, 3}, {9, -0f, 1e9f}});
            for (DType type : DType.values()) {
                Matrix narrow = wide.block(0, 2, 1, 2).converted(arena, type);
                assertEquals(type, narrow.dtype());
                for (int row = 0; row < 2; row++) {
                    for (int col = 0; col < 2; col++) {
                        assertEquals(type.round(wide.get(row, col + 1)), narrow.get(row, col));
                    }
                }
            }
        }
    }

    @Test
    void elementsOutsideAreRefusedEvenIfMemoryIsThere() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix inner = Matrix.allocate(arena, DType.FP32, 4, 4).block(1, 2, 1, 2);
            assertThrows(IndexOutOfBoundsException.class, () -> inner.get(0, 2));
            assertThrows(IndexOutOfBoundsException.class, () -> inner.get(2, 0));
            assertThrows(IndexOutOfBoundsException.class, () -> inner.set(0, -1, 1));
        }
    }

    @Test
    void equalityUpToNaNIsStrictOtherwise() {
        for (DType type : DType.values()) {
            Matrix one = Matrix.allocate(Arena.ofAuto(), type, 2, 3);
            Matrix other = Matrix.allocate(Arena.ofAuto(), type, 2, 3);
            one.set(1, 1, Float.NaN);
            assertFalse(one.equalsUpToNaN(other), "a NaN is no number");
            assertFalse(other.equalsUpToNaN(one), "nor a number a NaN");
            other.set(1, 1, Float.NaN);
            long sign = other.offset(1, 1) + type.bytes() - 1;
            byte top = other.data().get(ValueLayout.JAVA_BYTE, sign);
            other.data().set(ValueLayout.JAVA_BYTE, sign, (byte) (top ^ 0x80));
            assertFalse(one.bitwiseEquals(other), type.label());
            assertTrue(one.equalsUpToNaN(other), type.label());
            one.set(1, 2, -0f);
            assertFalse(one.equalsUpToNaN(other), "zeros of both signs");
            assertFalse(one.equalsUpToNaN(other.rows(0, 1)), "another shape");
        }
    }
}
