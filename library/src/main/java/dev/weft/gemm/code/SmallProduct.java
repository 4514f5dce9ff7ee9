package dev.weft.gemm.code;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Two small tiles that machine code multiplies before anything depends on it: in two calls along k,
 * and in place. So code that a machine does not execute correctly is detected, and a first call,
 * which takes Java some milliseconds, does not count towards a product. Elements are whole numbers
 * that every type holds, and their sums are exact in any order. For one thread.
 */
final class SmallProduct {

    private static final int DEPTH = Tiles.BF16_STEP + 7;
    private static final int TAIL = 5;

    private final Tiles tiles;
    private final DType typeA;
    private final DType panelType;
    private final int rows;
    private final int cols;

    /** With A of a type, and panels of the same type if the code takes such. */
    SmallProduct(Tiles tiles, DType typeA) {
        this.tiles = tiles;
        this.typeA = typeA;
        this.panelType = tiles.keeps(typeA) ? typeA : tiles.type();
        this.rows = tiles.rows();
        this.cols = tiles.cols();
    }

    /**
     * @throws IllegalStateException if a sum is wrong
     */
    void check() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = Matrix.allocate(arena, typeA, 2L * rows - 1, DEPTH + TAIL);
            long second = tiles.panelBytes(panelType, DEPTH);
            MemorySegment panels = arena.allocate(2 * second, 64);
            for (int k = 0; k < DEPTH + TAIL; k++) {
                for (int row = 0; row < a.rows(); row++) {
                    a.set(row, k, row + k);
                }
                int first = k < DEPTH ? 0 : DEPTH;
                for (int col = 0; col < cols; col++) {
                    float value = col - 2 * k;
                    long at =
                            (first == 0 ? 0 : second)
                                    + Tiles.inPanel(panelType, tiles.pairs(), cols, k - first, col);
                    panelType.write(panels, at, value);
                }
            }
            long most = 2L * rows + tiles.mostRowsInPlace();
            MemorySegment found = arena.allocate(most * cols * Float.BYTES, 64);
            multiply(a, 0, DEPTH, panels, 0, found, arena);
            check(found, DEPTH, cols, "");
            multiply(a, DEPTH, TAIL, panels, second, found, arena);
            check(found, DEPTH + TAIL, cols, "");
            if (tiles.mostRowsInPlace() > 0) {
                multiplyInPlace(a, panels, cols, found, arena);
                check(found, DEPTH, cols, " in place");
                found.fill((byte) -1);
                multiplyInPlace(a, panels, 1, found, arena);
                check(found, DEPTH, 1, " in place, one column");
            }
        }
    }

    private void check(MemorySegment found, int depth, int colCount, String how) {
        for (int row = 0; row < 2 * rows; row++) {
            for (int col = 0; col < colCount; col++) {
                float expected = 0;
                for (int k = 0; k < depth; k++) {
                    expected += (Math.min(row, 2 * rows - 2) + k) * (col - 2 * k);
                }
                float sum = found.getAtIndex(JAVA_FLOAT, (long) row * cols + col);
                if (sum != expected) {
                    throw new IllegalStateException(
                            "machine code for %s gave %s for %s at row %s, column %s of tiles%s"
                                    .formatted(tiles.name(), sum, expected, row, col, how));
                }
            }
        }
    }

    /** Multiplies two tiles, of which the second lacks a row, from column {@code k} of A on. */
    private void multiply(
            Matrix a,
            int k,
            int depth,
            MemorySegment panels,
            long panelFrom,
            MemorySegment sums,
            Arena arena) {
        Arguments arguments = new Arguments(arena.allocate(Arguments.BYTES, 8));
        MemorySegment packed = arena.allocate(2 * tiles.tileBytes(depth), 64);
        for (int tile = 0; tile < 2; tile++) {
            long from = a.offset((long) tile * rows, k);
            long to = tile * tiles.tileBytes(depth);
            int count = rows - tile;
            tiles.pack(typeA, a.data(), from, pitch(a), count, depth, packed, to, arguments);
        }
        long pitch = (long) cols * Float.BYTES;
        tiles.sum(
                k > 0, packed, 0, 2, rows, depth, panelType, panels, panelFrom, cols, sums, 0,
                pitch, arguments);
    }

    /** Multiplies the rows where they are with some columns of the first panel. */
    private void multiplyInPlace(
            Matrix a, MemorySegment panels, int colCount, MemorySegment sums, Arena arena) {
        Arguments arguments = new Arguments(arena.allocate(Arguments.BYTES, 8));
        MemorySegment panel = panels;
        if (panelType != DType.FP32) {
            panel = arena.allocate(tiles.panelBytes(DType.FP32, DEPTH), 64);
            tiles.widen(panelType, panels, 0, DEPTH, panel, arguments);
        }
        int count = (int) a.rows();
        long pitch = (long) cols * Float.BYTES;
        tiles.sumInPlace(
                false, typeA, a.data(), 0, pitch(a), count, DEPTH, panel, 0, colCount, sums, 0,
                pitch, arguments);
    }

    private static long pitch(Matrix a) {
        return a.rowPitch() * a.dtype().bytes();
    }
}
