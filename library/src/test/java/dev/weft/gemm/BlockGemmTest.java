package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.ffi.Processor;
import dev.weft.gemm.code.BlockCode;
import dev.weft.gemm.code.BlockKernel;
import dev.weft.gemm.code.ScalarBlocks;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.QuantizedMatrix;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The definition of products of blocks, written down once more without any layout. */
class BlockGemmTest {

    private final Arena arena = Arena.ofAuto();

    private static BlockKernel kernel(String name) {
        if (name.equals("scalar")) {
            return new ScalarBlocks(5, 3, true, 4);
        }
        String kind = name.equals("avx512bw") ? "avx512" : name;
        boolean named = !name.equals("amx");
        boolean known = !named || Processor.here().kinds().contains(kind);
        assumeTrue(known, name + " needs another processor");
        String before = System.getProperty("weft.gemm.code");
        try {
            set(named ? kind : null);
            BlockKernel code = BlockCode.forThisMachine();
            assumeTrue(code.name().equals(name), "this processor has " + code.name());
            return code;
        } finally {
            set(before);
        }
    }

    private static void set(String code) {
        if (code == null) {
            System.clearProperty("weft.gemm.code");
        } else {
            System.setProperty("weft.gemm.code", code);
        }
    }

    private Matrix normal(Random random, DType type, long rows, long cols) {
        Matrix matrix = Matrix.allocate(arena, type, rows, cols);
        matrix.fill(random::nextGaussian);
        return matrix;
    }

    @ParameterizedTest
    @ValueSource(strings = {"scalar", "amx", "avx512", "avx512bw", "avx2", "neon"})
    void bitsAreThoseOfTheDefinition(String name) {
        BlockKernel kernel = kernel(name);
        for (int i = 0; i < 120; i++) {
            long seed = 4409L * i + 1;
            Random random = new Random(seed);
            BlockType type = BlockType.MULTIPLIED.get(random.nextInt(3));
            BlockGemm gemm = new BlockGemm(kernel, type);
            long k = (long) type.elements() * (1 + random.nextInt(type == BlockType.Q4_K ? 4 : 70));
            int n = 1 + random.nextInt(80);
            int m = 1 + random.nextInt(i % 10 == 0 ? 60 : 9);
            DType aType = DType.UNSCALED.get(random.nextInt(3));
            DType cType = DType.UNSCALED.get(random.nextInt(3));
            Matrix a = unusual(random, normal(random, aType, m, k));
            Matrix b = normal(random, DType.FP32, n, k);
            QuantizedMatrix blocks = QuantizedMatrix.ofB(arena, b, true, type);
            PackedB packed = gemm.pack(b, true, arena);
            PackedB ofBlocks = gemm.packed(k, n, DType.FP32, packed.panels().asSlice(0));
            ofBlocks.fill(blocks, 0, 1);
            Matrix c = Matrix.allocate(arena, cType, m, n);
            Scratch scratch = gemm.scratch(k, n, arena);
            long split = random.nextInt(n / kernel.cols() + 1) * (long) kernel.cols();
            gemm.multiply(a, 0, m, packed, 0, split, c, 0, scratch);
            long first = random.nextInt(m);
            gemm.multiply(a, 0, first, packed, split, n - split, c, 0, scratch);
            gemm.multiply(a, first, m - first, packed, split, n - split, c, first, scratch);
            Matrix expected = Matrix.allocate(arena, cType, m, n);
            for (int row = 0; row < m; row++) {
                for (int col = 0; col < n; col++) {
                    expected.set(row, col, defined(a, row, blocks, col));
                }
            }
            assertTrue(
                    c.equalsUpToNaN(expected),
                    "%s seed %s: %s [%s, %s] x [%s, %s]"
                            .formatted(gemm.name(), seed, aType, m, k, k, n));
        }
    }

    /** Some rows are of zeros, tiny, huge or no numbers. */
    private static Matrix unusual(Random random, Matrix a) {
        float[] values = {
            0, 0x1p-101f, 0x1p-99f, Float.NaN, Float.NEGATIVE_INFINITY, 60000, 1e-45f
        };
        for (int i = 0; i < 3; i++) {
            long row = random.nextLong(a.rows());
            long first = random.nextLong(a.cols() / 32) * 32;
            float value = values[random.nextInt(values.length)];
            boolean all = random.nextBoolean();
            for (int col = 0; col < 32; col++) {
                if (all || random.nextInt(8) == 0) {
                    a.set(row, first + col, value);
                }
            }
        }
        return a;
    }

    private static float defined(Matrix a, int row, QuantizedMatrix b, int col) {
        BlockType type = b.type();
        float sum = 0;
        for (int k = 0; k < a.cols(); k += 32) {
            float largest = 0;
            boolean finite = true;
            for (int i = 0; i < 32; i++) {
                finite &= Float.isFinite(a.get(row, k + i));
                largest = Math.max(largest, Math.abs(a.get(row, k + i)));
            }
            boolean tiny = largest < 0x1p-100f;
            float scale = !finite ? Float.NaN : tiny ? 0 : largest / 127;
            int dot = 0;
            int ofA = 0;
            long block = b.offset(col, k);
            for (int i = 0; i < 32; i++) {
                float x = a.get(row, k + i);
                int q = !finite || tiny ? 0 : (int) Math.rint(x * (127 / largest));
                dot += q * type.number(b.data(), block, k % type.elements() + i);
                ofA += q;
            }
            float d = DType.FP16.read(b.data(), block);
            if (type == BlockType.Q4_K) {
                int group = k % 256 / 32;
                float s = d * BlockType.scaleOf(b.data(), block, group);
                float offset = DType.FP16.read(b.data(), block + 2);
                float m = offset * BlockType.offsetOf(b.data(), block, group);
                sum = Math.fma(Math.fma(s, dot, m * -ofA), scale, sum);
            } else {
                sum = Math.fma(d * dot, scale, sum);
            }
        }
        return sum;
    }

    @ParameterizedTest
    @ValueSource(strings = {"scalar", "amx", "avx512", "avx512bw", "avx2", "neon"})
    void productsInPartsOfKHaveTheBitsOfTheWhole(String name) {
        BlockKernel kernel = kernel(name);
        for (BlockType type : BlockType.MULTIPLIED) {
            Random random = new Random(91);
            BlockGemm gemm = new BlockGemm(kernel, type);
            long k = 1024;
            long cut = 256L * (1 + random.nextInt(3));
            int n = 37;
            Matrix a = normal(random, DType.BF16, 15, k);
            QuantizedMatrix b =
                    QuantizedMatrix.ofB(arena, normal(random, DType.FP32, n, k), true, type);
            Scratch scratch = gemm.scratch(k, n, arena);
            Matrix whole = Matrix.allocate(arena, DType.FP32, 15, n);
            gemm.multiply(a, 0, 15, packed(gemm, b), whole, 0, scratch);
            Matrix parts = Matrix.allocate(arena, DType.FP32, 15, n);
            for (long from : new long[] {0, cut}) {
                long depth = from == 0 ? cut : k - cut;
                PackedB part = packed(gemm, b.block(0, n, from, depth));
                Matrix ofA = a.block(0, 15, from, depth);
                gemm.multiply(ofA, 0, 15, part, 0, n, from > 0, parts, 0, scratch);
            }
            assertTrue(parts.bitwiseEquals(whole), gemm.name());
        }
    }

    private PackedB packed(Gemm gemm, QuantizedMatrix b) {
        PackedB packed =
                gemm.packed(
                        b.cols(),
                        b.rows(),
                        DType.FP32,
                        arena.allocate(gemm.packedBytes(b.cols(), b.rows(), DType.FP32), 64));
        for (int part = 0; part < 3; part++) {
            packed.fill(b, part, 3);
        }
        return packed;
    }

    /**
     * A product is right if it is that of the quantized rows and the values of B, up to sums in
     * fp32. One scale of one block of 64 that is off by 3% is beyond that.
     */
    @Test
    void aWrongScaleBreaksTheBound() {
        for (BlockType type : BlockType.MULTIPLIED) {
            Random random = new Random(17);
            Gemm gemm = Gemms.ofBlocks("auto", type);
            Matrix a = normal(random, DType.FP32, 8, 2048);
            QuantizedMatrix b =
                    QuantizedMatrix.ofB(arena, normal(random, DType.FP32, 24, 2048), true, type);
            Matrix c = Matrix.allocate(arena, DType.FP32, 8, 24);
            gemm.multiply(a, 0, 8, packed(gemm, b), c, 0, gemm.scratch(2048, 24, arena));
            Matrix ofA = RowQuantizer.values(a, arena);
            Matrix right = b.dequantize(arena);
            Deviation deviation = new Float64Oracle(ofA, right, true, Loss.NONE).check(c);
            assertTrue(deviation.withinBound(), type + ": " + deviation.describe());
            long scale = b.offset(11, 512);
            short half = b.data().get(ValueLayout.JAVA_SHORT, scale);
            b.data().set(ValueLayout.JAVA_SHORT, scale, (short) (half + 32));
            Matrix wrong = b.dequantize(arena);
            assertFalse(
                    new Float64Oracle(ofA, wrong, true, Loss.NONE).check(c).withinBound(),
                    type.label());
        }
    }

    /** What 8 bits cost: at most half a step of each element, times B. */
    @Test
    void roundedRowsAreNearTheirOwn() {
        Random random = new Random(3);
        Matrix a = normal(random, DType.FP32, 5, 960);
        Matrix values = RowQuantizer.values(a, arena);
        for (long row = 0; row < a.rows(); row++) {
            for (long first = 0; first < a.cols(); first += 32) {
                float largest = 0;
                for (long i = first; i < first + 32; i++) {
                    largest = Math.max(largest, Math.abs(a.get(row, i)));
                }
                for (long i = first; i < first + 32; i++) {
                    double error = Math.abs((double) values.get(row, i) - a.get(row, i));
                    assertTrue(error <= largest / 254.0 * (1 + 1e-5), row + ", " + i);
                }
            }
        }
    }

    @Test
    void enginesAreChosenByName() {
        assertEquals("q4_0-scalar", Gemms.ofBlocks("scalar", BlockType.Q4_0).name());
        String auto = Gemms.ofBlocks("auto", BlockType.Q4_K).name();
        assertTrue(auto.startsWith("q4_k-"), auto);
        assertEquals(auto, Gemms.withBitsOf("q4_k-scalar").name());
        assertEquals(
                "engine 'amx' does not multiply q8_0: expected auto, portable, native or scalar",
                refusal(() -> Gemms.ofBlocks("amx", BlockType.Q8_0)));
        assertTrue(refusal(() -> Gemms.ofBlocks("fast", BlockType.Q8_0)).startsWith("unknown"));
    }

    @Test
    void whatDoesNotFitIsRefused() {
        Gemm gemm = Gemms.ofBlocks("scalar", BlockType.Q8_0);
        assertEquals(
                "rows of 100 elements in q8_0: expected a multiple of 32",
                refusal(() -> gemm.packedBytes(100, 3, DType.FP32)));
        Random random = new Random(1);
        Matrix b = normal(random, DType.FP32, 3, 64);
        QuantizedMatrix other = QuantizedMatrix.ofB(arena, b, true, BlockType.Q4_0);
        PackedB packed = gemm.pack(b, true, arena);
        assertEquals(
                "B is [3, 64] q4_0, packed as q8_0: expected the same",
                refusal(() -> packed.fill(other, 0, 1)));
        Gemm fp32 = Gemms.byName("scalar");
        Matrix c = Matrix.allocate(arena, DType.FP32, 3, 3);
        Scratch scratch = fp32.scratch(64, 3, arena);
        assertTrue(
                refusal(() -> fp32.multiply(b, 0, 3, packed, c, 0, scratch))
                        .endsWith("pack B with the engine that multiplies"));
        PackedB elements = fp32.pack(b, true, arena);
        Scratch own = gemm.scratch(64, 3, arena);
        assertTrue(
                refusal(() -> gemm.multiply(b, 0, 3, elements, c, 0, own))
                        .startsWith("B is packed as fp32, engine q8_0-scalar reads BlockPanels"));
        assertTrue(
                refusal(() -> elements.fill(other, 0, 1))
                        .startsWith("B is [3, 64] q4_0, packed as fp32"));
    }

    @Test
    void nothingTimesNothingIsZero() {
        Gemm gemm = Gemms.ofBlocks("auto", BlockType.Q8_0);
        Matrix c = normal(new Random(2), DType.FP16, 2, 5);
        Matrix a = Matrix.allocate(arena, DType.FP16, 2, 0);
        PackedB b = gemm.pack(Matrix.allocate(arena, DType.FP16, 0, 5), false, arena);
        gemm.multiply(a, 0, 2, b, c, 0, gemm.scratch(0, 5, arena));
        List<Float> all = new ArrayList<>();
        for (float value : c.toArray()) {
            all.add(value);
        }
        assertTrue(all.stream().allMatch(value -> value == 0), all.toString());
    }

    private static String refusal(Runnable action) {
        return assertThrows(IllegalArgumentException.class, action::run).getMessage();
    }
}
