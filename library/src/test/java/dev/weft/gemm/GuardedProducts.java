package dev.weft.gemm;

import dev.weft.ffi.GuardedMemory;
import dev.weft.gemm.code.TileCode;
import dev.weft.gemm.code.Tiles;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashSet;
import java.util.Set;

/**
 * A process that multiplies, converts and judges matrices that are flush with pages which nobody
 * may touch; {@link GuardProductsTest} starts it. A step too far ends it at once. It prints what it
 * is about to do, and at the end how many cases it has done.
 */
final class GuardedProducts {

    private static final int[] COMMON_SIZES = {1, 2, 3, 63, 64, 65, 129};

    /** Types of A and B, of C, transposed B, gaps between rows. */
    private static final int VARIANTS = 24;

    private static final int VARIANTS_PER_SHAPE = 3;

    private int cases;

    private GuardedProducts() {}

    /**
     * @param args what to do: {@code scalar}, {@code native}, {@code amx}, {@code vector}, {@code
     *     openblas}, {@code converters} or {@code judges}
     */
    public static void main(String[] args) {
        GuardedProducts guarded = new GuardedProducts();
        switch (args[0]) {
            case "scalar" -> guarded.multiply(new ScalarTiles());
            case "native" -> guarded.multiply(TileCode.forThisMachine());
            case "amx" -> guarded.multiply(TileCode.amx());
            case "vector" -> guarded.multiply(new VectorTiles());
            case "openblas" -> guarded.multiply(new OpenBlasGemm(), 16);
            case "converters" -> guarded.convert();
            case "judges" -> guarded.judge();
            default -> throw new IllegalArgumentException("unknown work " + args[0]);
        }
        System.out.println("cases " + guarded.cases);
    }

    private void multiply(Tiles tiles) {
        multiply(new TiledGemm(tiles), tiles.cols());
        // So small that every loop turns, and that B is taken to be far.
        multiply(new TiledGemm(tiles, new Blocking(64, 13, 100, 1)), tiles.cols());
    }

    /** All shapes of the grid, each in some variants; every size meets every variant. */
    private void multiply(Gemm gemm, int panelCols) {
        System.out.println("products of " + gemm.name() + " by panels of " + panelCols);
        int shape = 0;
        for (int m : sizes(gemm.rowQuantum())) {
            for (int n : sizes(panelCols)) {
                for (int k : sizes(8)) {
                    for (int i = 0; i < VARIANTS_PER_SHAPE; i++) {
                        multiply(gemm, m, n, k, (5 * shape + 7 * i) % VARIANTS, i == 0);
                    }
                    shape++;
                }
            }
        }
        multiply(gemm, 5, 7, 513, 0, false);
        // Sums that go on in C itself, in whole tiles.
        multiply(gemm, 2 * gemm.rowQuantum() + 1, 2 * panelCols + 1, 513, 0, false);
    }

    /** Around the sizes at which an engine cuts work. */
    private static Set<Integer> sizes(int quantum) {
        Set<Integer> sizes = new LinkedHashSet<>();
        for (int common : COMMON_SIZES) {
            sizes.add(common);
        }
        for (int size = quantum - 1; size <= quantum + 1; size++) {
            sizes.add(size);
        }
        return sizes;
    }

    private void multiply(Gemm gemm, int m, int n, int k, int variant, boolean atStart) {
        DType any = DType.values()[variant % 3];
        DType dtype = gemm.multiplies(any) ? any : DType.BF16;
        DType out = variant / 3 % 2 == 0 ? DType.FP32 : dtype;
        boolean transposed = variant / 6 % 2 == 1;
        long gap = variant / 12 == 1 ? 3 : 0;
        // Scratch has an arena of its own: what it maps goes when that closes.
        try (Arena arena = guarded(atStart);
                Arena scratch = Arena.ofConfined()) {
            Matrix a = ones(arena, dtype, m, k, gap);
            Matrix b = transposed ? ones(arena, dtype, n, k, gap) : ones(arena, dtype, k, n, gap);
            Matrix c = matrix(arena, out, m, n, gap);
            MemorySegment memory = arena.allocate(gemm.packedBytes(k, n, dtype));
            PackedB packed = gemm.packed(k, n, dtype, memory);
            packed.fill(b, transposed, 0, 1);
            Scratch own = gemm.scratch(k, n, scratch);
            gemm.multiply(a, 0, m, packed, c, 0, own);
            require(c.get(0, 0) == out.round(k) && c.get(m - 1, n - 1) == out.round(k), c);
            if (out == DType.FP32) {
                gemm.multiply(a, 0, m, packed, 0, n, true, c, 0, own);
                require(c.get(0, 0) == 2 * k && c.get(m - 1, n - 1) == 2 * k, c);
            }
        }
    }

    /** Elements of one row, flush with the guard, to and from fp32 and back. */
    private void convert() {
        for (DType dtype : DType.UNSCALED) {
            System.out.println("conversions of " + dtype);
            for (int count = 1; count <= 1100; count += count < 140 ? 1 : 59) {
                try (Arena arena = guarded(false)) {
                    Matrix row = ones(arena, dtype, 1, count, 0);
                    Matrix back = matrix(arena, dtype, 1, count, 0);
                    MemorySegment wide = arena.allocate((long) count * Float.BYTES);
                    new RowConverter().widen(row, 0, 0, count, wide, 0);
                    new RowConverter().narrow(wide, 0, count, back, 0, 0);
                    require(back.bitwiseEquals(row), back);
                }
            }
        }
    }

    /** What judges a product reads all of it, and nothing else. */
    private void judge() {
        for (DType dtype : DType.UNSCALED) {
            System.out.println("judges of " + dtype);
            for (int m : COMMON_SIZES) {
                for (int n : COMMON_SIZES) {
                    for (int k : COMMON_SIZES) {
                        judge(dtype, m, n, k, (m + n + k) % 2 == 1, (m + k) % 3);
                    }
                }
            }
        }
    }

    private void judge(DType dtype, int m, int n, int k, boolean transposed, long gap) {
        try (Arena arena = guarded(false)) {
            Matrix a = ones(arena, dtype, m, k, gap);
            Matrix b = transposed ? ones(arena, dtype, n, k, gap) : ones(arena, dtype, k, n, gap);
            Matrix c = matrix(arena, DType.FP32, m, n, gap);
            for (int i = 0; i < m * n; i++) {
                c.set(i / n, i % n, k);
            }
            require(Freivalds.check(new Float64Oracle(a, b, transposed), c, 2, 1).accepted(), c);
            require(new Float64Oracle(a, b, transposed).check(c).withinBound(), c);
        }
    }

    private static Arena guarded(boolean atStart) {
        return new GuardedMemory(
                atStart ? GuardedMemory.Flush.WITH_START : GuardedMemory.Flush.WITH_END);
    }

    private static Matrix ones(Arena arena, DType dtype, int rows, int cols, long gap) {
        Matrix matrix = matrix(arena, dtype, rows, cols, gap);
        for (int row = 0; row < rows; row++) {
            for (int col = 0; col < cols; col++) {
                matrix.set(row, col, 1);
            }
        }
        return matrix;
    }

    /** Its last element is the last that may be touched. */
    private static Matrix matrix(Arena arena, DType dtype, int rows, int cols, long gap) {
        long pitch = cols + gap;
        long bytes = ((rows - 1) * pitch + cols) * dtype.bytes();
        return new Matrix(arena.allocate(bytes), dtype, rows, cols, pitch);
    }

    private void require(boolean right, Matrix matrix) {
        if (!right) {
            throw new IllegalStateException("wrong values in " + matrix);
        }
        cases++;
    }
}
