package dev.weft.tensor;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import java.util.Random;
import java.util.zip.CRC32;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class BlockTypeTest {

    private static final int BLOCKS = 5;

    /** Of what the reference program (the Python package gguf) gives for {@link #bytes}. */
    private static final Map<BlockType, Long> REFERENCE =
            Map.of(
                    BlockType.Q4_0, 0x80dee6caL,
                    BlockType.Q8_0, 0x82ad6b94L,
                    BlockType.Q2_K, 0x824fbce9L,
                    BlockType.Q4_K, 0x0c6ab1b8L,
                    BlockType.Q5_K, 0x5a75ae81L,
                    BlockType.Q6_K, 0xe2ddd16bL,
                    BlockType.IQ2_XXS, 0x03811403L);

    private final Arena arena = Arena.ofAuto();

    @ParameterizedTest
    @EnumSource
    void valuesAreThoseOfTheReference(BlockType type) {
        MemorySegment data = bytes(type);
        Matrix values =
                new QuantizedMatrix(data, type, 1, (long) BLOCKS * type.elements())
                        .dequantize(arena);
        CRC32 sum = new CRC32();
        sum.update(values.data().toArray(ValueLayout.JAVA_BYTE));
        assertEquals(REFERENCE.get(type), sum.getValue(), type.label());
    }

    /** Any bytes, but ordinary scales. */
    private MemorySegment bytes(BlockType type) {
        int[] halves =
                switch (type) {
                    case Q2_K -> new int[] {80, 82};
                    case Q4_K, Q5_K -> new int[] {0, 2};
                    case Q6_K -> new int[] {208};
                    default -> new int[] {0};
                };
        MemorySegment data = arena.allocate((long) BLOCKS * type.bytes());
        int state = 1;
        for (long i = 0; i < data.byteSize(); i++) {
            state = (int) (state * 1103515245L + 12345) & 0x7fffffff;
            data.set(ValueLayout.JAVA_BYTE, i, (byte) (state >> 16));
        }
        for (int block = 0; block < BLOCKS; block++) {
            for (int j = 0; j < halves.length; j++) {
                long at = (long) block * type.bytes() + halves[j];
                data.set(DType.SHORT, at, (short) (0x2c00 + block * 77 + j * 5));
            }
        }
        return data;
    }

    /** A block's error is at most half a step, and what rounding its scales costs. */
    @Test
    void quantizedValuesAreNear() {
        for (int i = 0; i < 300; i++) {
            long seed = 77L * i;
            Random random = new Random(seed);
            float size = (float) Math.exp(8 * random.nextDouble() - 4);
            float shift = random.nextInt(3) - 1;
            Matrix b = Matrix.allocate(arena, DType.FP32, 3, 512);
            b.fill(() -> size * (random.nextGaussian() + shift));
            for (BlockType type : BlockType.MULTIPLIED) {
                Matrix values = QuantizedMatrix.ofB(arena, b, true, type).dequantize(arena);
                for (long row = 0; row < 3; row++) {
                    for (long first = 0; first < 512; first += 32) {
                        checkGroup(b, values, row, first, type, seed);
                    }
                }
            }
        }
    }

    private static void checkGroup(
            Matrix b, Matrix values, long row, long first, BlockType type, long seed) {
        float superLargest = ScaledMatrix.largest(b.block(row, 1, first / 256 * 256, 256));
        float largest = ScaledMatrix.largest(b.block(row, 1, first, 32));
        double allowed =
                switch (type) {
                    case Q8_0 -> largest / 127 * 0.51;
                    // 7 is the largest positive number, but -8 stands for the largest element.
                    case Q4_0 -> largest / 8 * 1.01;
                    // Half a step of the number, of its scale (15 times) and of the offset.
                    default -> 2 * largest / 15 * 0.51 + superLargest / 63 * 1.6;
                };
        for (long col = first; col < first + 32; col++) {
            double error = Math.abs(values.get(row, col) - b.get(row, col));
            assertTrue(
                    error <= allowed,
                    type + " seed " + seed + " at " + row + ", " + col + ": " + error);
        }
    }

    /** What is a value of the type already stays as it is, in both orders of B. */
    @Test
    void wholeNumbersComeBack() {
        for (BlockType type : BlockType.MULTIPLIED) {
            Random random = new Random(5);
            Matrix b = Matrix.allocate(arena, DType.FP32, 256, 4);
            int most = type == BlockType.Q8_0 ? 127 : 15;
            b.fill(() -> random.nextInt(most + 1) - (type == BlockType.Q4_0 ? 8 : 0));
            for (long col = 0; col < 4; col++) {
                for (long row = 0; row < 256; row += 32) {
                    b.set(row, col, type == BlockType.Q4_0 ? -8 : most);
                }
            }
            QuantizedMatrix quantized = QuantizedMatrix.ofB(arena, b, false, type);
            Matrix values = quantized.dequantize(arena);
            assertEquals(4, values.rows());
            for (long col = 0; col < 4; col++) {
                for (long row = 0; row < 256; row++) {
                    float expected = b.get(row, col);
                    assertEquals(expected, values.get(col, row), 0.01 * most, type.label());
                    if (type != BlockType.Q4_K) {
                        assertEquals(expected, values.get(col, row), type.label());
                    }
                }
            }
            Matrix turned = Matrix.allocate(arena, DType.FP32, 4, 256);
            for (long k = 0; k < 256; k++) {
                for (long n = 0; n < 4; n++) {
                    turned.set(n, k, b.get(k, n));
                }
            }
            assertArrayEquals(
                    quantized.data().toArray(ValueLayout.JAVA_BYTE),
                    QuantizedMatrix.ofB(arena, turned, true, type)
                            .data()
                            .toArray(ValueLayout.JAVA_BYTE));
        }
    }

    @Test
    void zerosStayZero() {
        for (BlockType type : BlockType.MULTIPLIED) {
            Matrix zeros = Matrix.allocate(arena, DType.BF16, 2, 256);
            Matrix values = QuantizedMatrix.ofB(arena, zeros, true, type).dequantize(arena);
            assertEquals(0, ScaledMatrix.largest(values));
        }
    }

    @Test
    void whatHasNoBlocksIsRefused() {
        for (BlockType type : BlockType.MULTIPLIED) {
            Matrix odd = Matrix.allocate(arena, DType.FP32, 48, 3);
            assertEquals(
                    "rows of 48 elements in %s: expected a multiple of %s"
                            .formatted(type.label(), type.elements()),
                    refusal(() -> QuantizedMatrix.ofB(arena, odd, false, type)));
            Matrix nan = Matrix.allocate(arena, DType.FP32, 256, 1);
            nan.set(37, 0, Float.NaN);
            assertEquals(
                    "cannot quantize NaN to " + type.label() + ": expected finite elements",
                    refusal(() -> QuantizedMatrix.ofB(arena, nan, false, type)));
            nan.set(37, 0, 1e30f);
            assertTrue(
                    refusal(() -> QuantizedMatrix.ofB(arena, nan, false, type))
                            .endsWith("expected at most 65504"));
        }
        assertEquals(
                "quantize to q6_k: expected q8_0, q4_0 or q4_k",
                refusal(() -> new Quantizer(BlockType.Q6_K)));
        assertEquals(
                "unknown type of blocks 'q6_k': expected q8_0, q4_0, q4_k",
                refusal(() -> BlockType.of("q6_k")));
    }

    @Test
    void viewsAreThePartsOfTheMatrix() {
        Matrix b = Matrix.allocate(arena, DType.FP32, 5, 1024);
        Random random = new Random(8);
        b.fill(random::nextGaussian);
        for (BlockType type : BlockType.MULTIPLIED) {
            QuantizedMatrix all = QuantizedMatrix.ofB(arena, b, true, type);
            Matrix values = all.dequantize(arena);
            Matrix part = all.block(1, 3, 256, 512).dequantize(arena);
            assertTrue(part.bitwiseEquals(values.block(1, 3, 256, 512)), type.label());
            assertTrue(
                    refusal(() -> all.block(0, 1, 16, 256))
                            .endsWith("expected multiples of " + type.elements()));
        }
    }

    private static String refusal(Runnable action) {
        return assertThrows(IllegalArgumentException.class, action::run).getMessage();
    }
}
