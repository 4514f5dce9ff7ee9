package dev.weft.cuda.kernel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cuda.kernel.KernelFamily.Tiling;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.QuantizedMatrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What lanes read from packed blocks, by the addresses of blocks_gemm.cu. */
class PackedBlocksTest {

    /**
     * @param units along K
     */
    private record Lanes(MemorySegment packed, BlockType type, long units) {

        int unitBlocks() {
            return type == BlockType.Q4_K ? 4 : 1;
        }

        private int laneBytes() {
            return type == BlockType.Q8_0 ? 32 : 16;
        }

        private int at(long offset) {
            return packed.get(ValueLayout.JAVA_BYTE, offset) & 0xFF;
        }

        private float half(long offset) {
            return Float.float16ToFloat(packed.get(ValueLayout.JAVA_SHORT_UNALIGNED, offset));
        }

        /**
         * The value that a lane has in one half of register {@code i} of a step: of column {@code
         * group * 16 + lane / 4 + i % 2 * 8}.
         */
        float value(long tile, int block, int group, int lane, int step, int i, int high) {
            int numberBytes = 4 * 32 * laneBytes();
            int unitBytes = unitBlocks() * (numberBytes + 256) + (type == BlockType.Q4_K ? 256 : 0);
            long unit = (tile * units + block / unitBlocks()) * unitBytes;
            int ofUnit = block % unitBlocks();
            long numbers = unit + ofUnit * numberBytes + group * 32 * laneBytes() + lane * 16;
            int pair = group * 8 + lane / 4;
            int column = i % 2;
            long scales =
                    unit + unitBlocks() * numberBytes + ofUnit * 256 + (step / 2 * 32 + pair) * 4;
            if (type == BlockType.Q8_0) {
                int word = step * 2 + i / 2;
                int number = (byte) at(numbers + word / 4 * 512 + word % 4 * 4 + i % 2 * 2 + high);
                return half(scales + column * 2) * number;
            }
            int word = packed.get(ValueLayout.JAVA_INT_UNALIGNED, numbers + step * 4);
            int number = (word >> i * 4 & 0x000f000f) >> high * 16 & 15;
            if (type == BlockType.Q4_0) {
                return half(scales + column * 2) * (number - 8);
            }
            long both = unit + unitBlocks() * (numberBytes + 256) + pair * 8;
            float scale = half(both + column * 2) * at(scales + column);
            float offset = half(both + 4 + column * 2) * at(scales + 2 + column);
            return scale * number - offset;
        }
    }

    @ParameterizedTest
    @CsvSource({
        "Q8_0, 64, 64", "Q8_0, 130, 96", "Q8_0, 3, 32",
        "Q4_0, 64, 64", "Q4_0, 130, 96", "Q4_0, 3, 32",
        "Q4_K, 64, 256", "Q4_K, 130, 768", "Q4_K, 3, 256",
    })
    void lanesReadTheValuesOfTheirColumns(BlockType type, int n, int k) {
        try (Arena arena = Arena.ofConfined()) {
            Matrix b = Matrix.allocate(arena, DType.FP32, n, k);
            Random random = new Random(n);
            for (int row = 0; row < n; row++) {
                for (int col = 0; col < k; col++) {
                    b.set(row, col, (float) random.nextGaussian());
                }
            }
            QuantizedMatrix blocks = QuantizedMatrix.ofB(arena, b, true, type);
            Matrix expected = blocks.dequantize(arena);
            MemorySegment packed = PackedBlocks.pack(blocks, arena);
            int unitK = type == BlockType.Q4_K ? 256 : 64;
            Lanes lanes = new Lanes(packed, type, Math.ceilDiv(k, unitK));
            assertEquals(PackedBlocks.bytes(type, n, k), packed.byteSize());
            int seen = 0;
            for (int tile = 0; tile * 64 < n; tile++) {
                for (int element = 0; element < 64 * Math.ceilDiv(k, 64) * 64; element++) {
                    int high = element % 2;
                    int i = element / 2 % 4;
                    int step = element / 8 % 4;
                    int lane = element / 32 % 32;
                    int group = element / 1024 % 4;
                    int block = element / 4096;
                    long row = tile * 64 + group * 16 + lane / 4 + i % 2 * 8;
                    long col = block * 64 + step * 16 + lane % 4 * 2 + i / 2 * 8 + high;
                    boolean there = row < n && col < k;
                    float value = lanes.value(tile, block, group, lane, step, i, high);
                    float wanted = there ? expected.get(row, col) + 0f : 0f;
                    assertEquals(wanted, value + 0f, "column " + row + ", k " + col);
                    seen += there ? 1 : 0;
                }
            }
            assertEquals(n * k, seen);
        }
    }

    /** As many thread blocks as their registers allow, or one, fit on a multiprocessor. */
    @Test
    void stagesFit() {
        for (BlockType type : BlockType.MULTIPLIED) {
            KernelFamily family = KernelFamily.of(type);
            assertEquals(0, PackedBlocks.bytes(type, 1, 1) % 16, "a bulk copy");
            for (Tiling tiling : family.tilings) {
                int bytes = family.sharedBytes(tiling) + KernelFamily.RESERVED_SHARED_BYTES;
                int blocks = family.mostBlocks(tiling);
                assertTrue(blocks * bytes <= 228 << 10, type + " " + tiling + ": " + bytes);
            }
        }
    }
}
