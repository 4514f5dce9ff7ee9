package dev.weft.gemm.code;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.tensor.DType;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The code for each kind of processor against what it should give, bit for bit, with operands that
 * end at pages that nobody may touch; on another processor under emulation.
 */
class KernelsTest {

    private static final int[] DEPTHS = {0, 1, 3, 4, 5, 11, 64};

    private static final int[] DEPTHS_IN_PLACE = {16, 17, 19, 23, 31, 32, 75};

    /** Kernels, and where they run. */
    private record Kernels(TileCode.Written code, KernelMachine machine) {

        /** Skips the test if there is no such machine. */
        static Kernels of(String kind) {
            Kernels kernels =
                    switch (kind) {
                        case "avx2" -> new Kernels(X86Tiles.write(256), KernelMachine.X86);
                        case "avx512" -> new Kernels(X86Tiles.write(512), KernelMachine.X86);
                        default -> new Kernels(A64Tiles.write(), KernelMachine.A64);
                    };
            String feature =
                    kind.equals("avx512") ? "avx512f" : kind.equals("neon") ? "asimd" : kind;
            Optional<String> missing = kernels.machine.unavailable(feature);
            assumeTrue(missing.isEmpty(), () -> missing.orElseThrow());
            return kernels;
        }

        byte[] run(int entry, byte[] a, byte[] b, byte[] c, long... arguments) {
            long[] all = Arrays.copyOf(arguments, Arguments.Name.values().length);
            return machine.run(code.code(), entry, a, b, c, all);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"avx2", "avx512", "neon"})
    void sumsAreTheChainOfMultiplyAdds(String kind) {
        Kernels kernels = Kernels.of(kind);
        int seed = 0;
        for (DType type : DType.UNSCALED) {
            int[][] sums = kernels.code.sums().get(type);
            for (int i = 0; i < sums.length; i++) {
                for (int j = 0; j < sums[i].length; j++) {
                    for (int depth : DEPTHS) {
                        sum(kernels, type, i, j, depth, new Random(seed++));
                    }
                }
            }
        }
    }

    private static void sum(Kernels kernels, DType type, int i, int j, int depth, Random random) {
        TileCode.Written code = kernels.code;
        int tiles = 1 + random.nextInt(3);
        int rows = (i + 1) * code.rowStep();
        int cols = (j + 1) * code.colStep();
        // Tiles with fewer rows than they could have are the last ones.
        int count = rows == code.rows() ? tiles : 1;
        int panels = cols == code.cols() ? 1 + random.nextInt(3) : 1;
        int width = panels * cols;
        boolean resume = random.nextBoolean();
        int pitch = width + random.nextInt(3) * 5;
        float[] a = floats(random, DType.FP32, 3 + count * depth * code.rows());
        float[] b = floats(random, type, 5 + panels * depth * code.cols());
        float[] c = floats(random, DType.FP32, 2 + (count * rows - 1) * pitch + width);
        float[] expected = c.clone();
        for (int row = 0; row < count * rows; row++) {
            for (int col = 0; col < width; col++) {
                int at = 2 + row * pitch + col;
                float sum = resume ? c[at] : 0f;
                for (int k = 0; k < depth; k++) {
                    int tile = row / rows * depth * code.rows();
                    float left = a[3 + tile + k * code.rows() + row % rows];
                    int panel = col / cols * depth * code.cols();
                    sum = Math.fma(left, b[5 + panel + k * code.cols() + col % cols], sum);
                }
                expected[at] = sum;
            }
        }
        byte[] found =
                kernels.run(
                        code.sums().get(type)[i][j],
                        bytes(DType.FP32, a),
                        bytes(type, b),
                        bytes(DType.FP32, c),
                        12,
                        5L * type.bytes(),
                        8,
                        depth,
                        pitch * 4L,
                        resume ? 1 : 0,
                        count,
                        panels);
        assertArrayEquals(
                bytes(DType.FP32, expected),
                found,
                () -> type + ", " + rows + " x " + cols + ", depth " + depth);
    }

    @ParameterizedTest
    @ValueSource(strings = {"avx2", "avx512", "neon"})
    void sumsInPlaceAreTheChainOfMultiplyAdds(String kind) {
        Kernels kernels = Kernels.of(kind);
        int seed = 0;
        for (DType type : DType.UNSCALED) {
            for (int j = 0; j < kernels.code.rowsInPlace().length; j++) {
                for (int depth : DEPTHS_IN_PLACE) {
                    sumInPlace(kernels, type, j, depth, new Random(seed++));
                }
            }
        }
    }

    private static void sumInPlace(Kernels kernels, DType type, int j, int depth, Random random) {
        TileCode.Written code = kernels.code;
        int quantum = code.rowsInPlace()[j];
        int count = 1 + random.nextInt(2 * quantum + 1);
        int rows = Math.ceilDiv(count, quantum) * quantum;
        int cols = code.widthsInPlace()[j];
        boolean resume = random.nextBoolean();
        int aPitch = depth + random.nextInt(5);
        int pitch = cols + random.nextInt(3) * 5;
        float[] a = floats(random, type, 3 + (count - 1) * aPitch + depth);
        float[] b = floats(random, DType.FP32, 5 + depth * code.cols());
        float[] c = floats(random, DType.FP32, 2 + (rows - 1) * pitch + cols);
        float[] expected = c.clone();
        for (int row = 0; row < rows; row++) {
            int from = 3 + Math.min(row, count - 1) * aPitch;
            for (int col = 0; col < cols; col++) {
                int at = 2 + row * pitch + col;
                float sum = resume ? c[at] : 0f;
                for (int k = 0; k < depth; k++) {
                    sum = Math.fma(a[from + k], b[5 + k * code.cols() + col], sum);
                }
                expected[at] = sum;
            }
        }
        byte[] found =
                kernels.run(
                        code.inPlace().get(type)[j],
                        bytes(type, a),
                        bytes(DType.FP32, b),
                        bytes(DType.FP32, c),
                        3L * type.bytes(),
                        20,
                        8,
                        depth,
                        pitch * 4L,
                        resume ? 1 : 0,
                        count,
                        0,
                        (long) aPitch * type.bytes());
        assertArrayEquals(
                bytes(DType.FP32, expected),
                found,
                () -> type + ", " + count + " rows x " + cols + ", depth " + depth);
    }

    @ParameterizedTest
    @ValueSource(strings = {"avx2", "avx512", "neon"})
    void packedTilesHoldTheRowsAndRepeatTheLast(String kind) {
        Kernels kernels = Kernels.of(kind);
        int rows = kernels.code.rows();
        for (DType type : DType.UNSCALED) {
            for (int depth : DEPTHS) {
                pack(kernels, type, 1 + depth % rows, depth, new Random(depth));
                pack(kernels, type, rows, depth, new Random(depth));
                pack(kernels, type, rows + 1 + depth % 30, depth, new Random(depth));
            }
        }
    }

    private static void pack(Kernels kernels, DType type, int count, int depth, Random random) {
        int tileRows = kernels.code.rows();
        int pitch = depth + random.nextInt(5);
        float[] a = floats(random, type, (count - 1) * pitch + depth);
        int rows = Math.ceilDiv(count, tileRows) * tileRows;
        float[] expected = new float[depth * rows];
        for (int row = 0; row < rows; row++) {
            for (int k = 0; k < depth; k++) {
                int tile = row / tileRows * depth * tileRows;
                expected[tile + k * tileRows + row % tileRows] =
                        a[Math.min(row, count - 1) * pitch + k];
            }
        }
        byte[] found =
                kernels.run(
                        kernels.code.packs().get(type),
                        bytes(type, a),
                        new byte[0],
                        bytes(DType.FP32, new float[expected.length]),
                        0,
                        0,
                        0,
                        depth,
                        (long) pitch * type.bytes(),
                        0,
                        count);
        assertArrayEquals(
                bytes(DType.FP32, expected), found, () -> type + ", " + count + " x " + depth);
    }

    @ParameterizedTest
    @ValueSource(strings = {"avx2", "avx512", "neon"})
    void widenedPanelsHoldTheSameValues(String kind) {
        Kernels kernels = Kernels.of(kind);
        for (DType type : kernels.code.widens().keySet()) {
            for (int depth : DEPTHS) {
                float[] panel = floats(new Random(depth), type, 7 + depth * kernels.code.cols());
                byte[] found =
                        kernels.run(
                                kernels.code.widens().get(type),
                                bytes(type, panel),
                                new byte[0],
                                new byte[(panel.length - 7) * Float.BYTES],
                                7L * type.bytes(),
                                0,
                                0,
                                depth);
                float[] expected = Arrays.copyOfRange(panel, 7, panel.length);
                assertArrayEquals(
                        bytes(DType.FP32, expected), found, () -> type + ", depth " + depth);
            }
        }
    }

    /** Of unlike sizes, so that every rounding counts; some zeros of either sign. */
    private static float[] floats(Random random, DType type, int count) {
        float[] values = new float[count];
        for (int i = 0; i < count; i++) {
            int kind = random.nextInt(16);
            float value =
                    switch (kind) {
                        case 0 -> 0f;
                        case 1 -> -0f;
                        default -> (random.nextFloat() - 0.5f) * (1 << kind);
                    };
            values[i] = type.round(value);
        }
        return values;
    }

    private static byte[] bytes(DType type, float[] values) {
        byte[] bytes = new byte[values.length * type.bytes()];
        MemorySegment memory = MemorySegment.ofArray(bytes);
        for (int i = 0; i < values.length; i++) {
            type.write(memory, (long) i * type.bytes(), values[i]);
        }
        return bytes;
    }
}
