package dev.weft.gemm.code;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.tensor.DType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The code for x86_64 against what it should give, bit for bit, with operands that end at pages
 * that nobody may touch; on another processor under emulation.
 */
class X86TilesTest {

    private static final int[] DEPTHS = {0, 1, 3, 4, 5, 11, 64};

    private static void assumeRuns(int vectorBits) {
        String feature = vectorBits == 256 ? "avx2" : "avx512f";
        assumeTrue(
                X86Machine.unavailable(feature).isEmpty(),
                () -> X86Machine.unavailable(feature).orElseThrow());
    }

    @ParameterizedTest
    @ValueSource(ints = {256, 512})
    void sumsAreTheChainOfMultiplyAdds(int vectorBits) {
        assumeRuns(vectorBits);
        TileCode.Written code = X86Tiles.write(vectorBits);
        int seed = 0;
        for (int i = 0; i < code.sums().length; i++) {
            for (int j = 0; j < code.sums()[i].length; j++) {
                for (int depth : DEPTHS) {
                    sum(code, i, j, depth, new Random(seed++));
                }
            }
        }
    }

    private static void sum(TileCode.Written code, int i, int j, int depth, Random random) {
        int tiles = 1 + random.nextInt(3);
        int rows = (i + 1) * code.rowStep();
        int cols = (j + 1) * code.colStep();
        // Tiles with fewer rows than they could have are the last ones.
        int count = rows == code.rows() ? tiles : 1;
        int panels = cols == code.cols() ? 1 + random.nextInt(3) : 1;
        int width = panels * cols;
        boolean resume = random.nextBoolean();
        int pitch = width + random.nextInt(3) * 5;
        float[] a = floats(random, 3 + count * depth * code.rows());
        float[] b = floats(random, 5 + panels * depth * code.cols());
        float[] c = floats(random, 2 + (count * rows - 1) * pitch + width);
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
                X86Machine.run(
                        code.code(),
                        code.sums()[i][j],
                        bytes(a),
                        bytes(b),
                        bytes(c),
                        12,
                        20,
                        8,
                        depth,
                        pitch * 4L,
                        resume ? 1 : 0,
                        count,
                        panels);
        assertArrayEquals(bytes(expected), found, () -> rows + " x " + cols + ", depth " + depth);
    }

    @ParameterizedTest
    @ValueSource(ints = {256, 512})
    void packedTilesHoldTheRowsAndRepeatTheLast(int vectorBits) {
        assumeRuns(vectorBits);
        TileCode.Written code = X86Tiles.write(vectorBits);
        for (DType type : DType.UNSCALED) {
            for (int depth : DEPTHS) {
                pack(code, type, 1 + depth % code.rows(), depth, new Random(depth));
                pack(code, type, code.rows(), depth, new Random(depth));
                pack(code, type, code.rows() + 1 + depth % 30, depth, new Random(depth));
            }
        }
    }

    private static void pack(
            TileCode.Written code, DType type, int count, int depth, Random random) {
        int pitch = depth + random.nextInt(5);
        ByteBuffer a =
                ByteBuffer.allocate(((count - 1) * pitch + depth) * type.bytes())
                        .order(ByteOrder.LITTLE_ENDIAN);
        int rows = Math.ceilDiv(count, code.rows()) * code.rows();
        float[] expected = new float[depth * rows];
        for (int row = 0; row < count; row++) {
            for (int k = 0; k < depth; k++) {
                float value = type.round(random.nextFloat() - 0.5f);
                int at = row * pitch + k;
                switch (type) {
                    case FP32 -> a.putFloat(4 * at, value);
                    case FP16 -> a.putShort(2 * at, Float.floatToFloat16(value));
                    case BF16 -> a.putShort(2 * at, (short) (Float.floatToIntBits(value) >> 16));
                }
                int last = row == count - 1 ? rows : row + 1;
                for (int r = row; r < last; r++) {
                    int tile = r / code.rows() * depth * code.rows();
                    expected[tile + k * code.rows() + r % code.rows()] = value;
                }
            }
        }
        byte[] found =
                X86Machine.run(
                        code.code(),
                        code.packs().get(type),
                        a.array(),
                        new byte[0],
                        bytes(new float[expected.length]),
                        0,
                        0,
                        0,
                        depth,
                        (long) pitch * type.bytes(),
                        0,
                        count);
        assertArrayEquals(bytes(expected), found, () -> type + ", " + count + " x " + depth);
    }

    /** Of unlike sizes, so that every rounding counts; some zeros of either sign. */
    private static float[] floats(Random random, int count) {
        float[] values = new float[count];
        for (int i = 0; i < count; i++) {
            int kind = random.nextInt(16);
            values[i] =
                    switch (kind) {
                        case 0 -> 0f;
                        case 1 -> -0f;
                        default -> (random.nextFloat() - 0.5f) * (1 << kind);
                    };
        }
        return values;
    }

    private static byte[] bytes(float[] values) {
        ByteBuffer buffer =
                ByteBuffer.allocate(values.length * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        buffer.asFloatBuffer().put(values);
        return buffer.array();
    }
}
