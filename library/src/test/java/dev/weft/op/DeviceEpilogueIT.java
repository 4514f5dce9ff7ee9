package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceEpilogue;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Epilogues on a real GPU: the bits of the CPU's. */
@Tag("gpu")
class DeviceEpilogueIT {

    private static final List<String> TEXTS =
            List.of(
                    "",
                    "bias",
                    "relu",
                    "gelu",
                    "gelu-tanh",
                    "silu",
                    "residual",
                    "swiglu",
                    "bias,gelu",
                    "bias,silu,residual",
                    "residual,relu,bias",
                    "bias,swiglu,residual",
                    "gelu,swiglu,bias,relu",
                    "rmsnorm",
                    "layernorm",
                    "bias,residual,rmsnorm",
                    "residual,gelu,layernorm",
                    "swiglu,residual,layernorm");

    private static final float[] SPECIAL = {
        Float.NaN,
        0f,
        -0f,
        Float.POSITIVE_INFINITY,
        Float.NEGATIVE_INFINITY,
        Float.MIN_VALUE,
        -Float.MIN_VALUE,
        Float.MIN_NORMAL,
        -0x1.8p-127f,
        Float.MAX_VALUE,
        -Float.MAX_VALUE,
        -13.2f,
        -16f,
        -90f,
        -200f,
        65_520f,
        0x1.01p-8f,
        6e-8f
    };

    /** Pitches beyond the columns, and rows that start anywhere. */
    private static final int PADDING = 3;

    private final Arena arena = Arena.ofShared();
    private final List<DeviceBuffer> buffers = new ArrayList<>();
    private Gpu gpu;
    private GpuStream stream;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
        stream = GpuStream.create();
    }

    @AfterEach
    void close() {
        buffers.forEach(DeviceBuffer::close);
        if (stream != null) {
            stream.close();
        }
        arena.close();
    }

    /** Any bits, ordinary numbers and special values. */
    private Matrix random(DType type, long rows, long cols, Random random) {
        Matrix matrix = Matrix.allocate(arena, type, rows, cols);
        for (long r = 0; r < rows; r++) {
            for (long c = 0; c < cols; c++) {
                float value =
                        switch (random.nextInt(8)) {
                            case 0 -> SPECIAL[random.nextInt(SPECIAL.length)];
                            case 1 -> Float.intBitsToFloat(random.nextInt());
                            default -> (float) (4 * random.nextGaussian());
                        };
                matrix.set(r, c, value);
            }
        }
        return matrix;
    }

    /** Rows of like numbers, one of them with a special value: it shows in the whole row. */
    private Matrix ordinary(DType type, long rows, long cols, Random random) {
        Matrix matrix = Matrix.allocate(arena, type, rows, cols);
        for (long r = 0; r < rows; r++) {
            double size = Math.pow(2, random.nextInt(20) - 14);
            for (long c = 0; c < cols; c++) {
                matrix.set(r, c, (float) (size * (random.nextGaussian() + 0.3)));
            }
        }
        if (rows > 2) {
            matrix.set(2, random.nextLong(cols), SPECIAL[random.nextInt(SPECIAL.length)]);
        }
        return matrix;
    }

    /** With rows that are aligned, or that start at any element. */
    private DeviceMatrix device(DType type, long rows, long cols, boolean aligned) {
        long pitch = aligned ? DeviceMatrix.alignedPitch(type, cols) : cols + PADDING;
        long bytes = (rows * pitch + 1) * type.bytes();
        buffers.add(DeviceBuffer.allocate(bytes));
        long address = buffers.getLast().address() + (aligned ? 0 : type.bytes());
        return new DeviceMatrix(address, type, rows, cols, pitch);
    }

    private DeviceMatrix upload(Matrix matrix, boolean aligned) {
        DeviceMatrix there = device(matrix.dtype(), matrix.rows(), matrix.cols(), aligned);
        there.upload(matrix, stream);
        return there;
    }

    private static Matrix sum(List<Matrix> parts, Arena arena) {
        Matrix first = parts.getFirst();
        Matrix sums = Matrix.allocate(arena, DType.FP32, first.rows(), first.cols());
        for (long r = 0; r < sums.rows(); r++) {
            for (long c = 0; c < sums.cols(); c++) {
                float sum = first.get(r, c);
                for (Matrix part : parts.subList(1, parts.size())) {
                    sum += part.get(r, c);
                }
                sums.set(r, c, sum);
            }
        }
        return sums;
    }

    private void check(
            String text, DType out, int ranks, long rows, long cols, boolean aligned, long seed) {
        Random random = new Random(seed);
        int products = text.contains("swiglu") ? 2 : 1;
        boolean norm = text.endsWith("norm");
        Matrix bias =
                norm ? ordinary(DType.BF16, 1, cols, random) : random(DType.BF16, 1, cols, random);
        DType residualType = DType.values()[random.nextInt(3)];
        Matrix residual =
                norm
                        ? ordinary(residualType, rows, cols, random)
                        : random(residualType, rows, cols, random);
        List<Matrix> sums = new ArrayList<>();
        List<List<DeviceMatrix>> parts = new ArrayList<>();
        for (int p = 0; p < products; p++) {
            List<Matrix> all = new ArrayList<>();
            for (int r = 0; r < ranks; r++) {
                all.add(
                        norm
                                ? ordinary(DType.FP32, rows, cols, random)
                                : random(DType.FP32, rows, cols, random));
            }
            sums.add(sum(all, arena));
            parts.add(all.stream().map(part -> upload(part, aligned)).toList());
        }
        Matrix expected = Matrix.allocate(arena, out, rows, cols);
        epilogue(text, bias, residual).apply(sums, List.of(expected));

        // A frame around the result shows what is written beyond it.
        DeviceMatrix frame = upload(random(out, rows + 2, cols + 8, new Random(1)), aligned);
        DeviceMatrix target = new DeviceMatrix(frame.at(1, 4), out, rows, cols, frame.rowPitch());
        DeviceMatrix there = upload(residual, aligned);
        Epilogue steps = epilogue(text, bias, there);
        long half = rows / 2;
        List<Long> columns = java.util.Collections.nCopies(products, cols);
        try (DeviceEpilogue epilogue = new DeviceEpilogue(gpu, steps.fitting(columns), rows)) {
            epilogue.begin(rows);
            for (long[] block : new long[][] {{0, half}, {half, rows - half}}) {
                try (DeviceEpilogue.Rows made =
                        epilogue.rows(
                                0,
                                blockOf(parts.getFirst(), block),
                                products == 1 ? List.of() : blockOf(parts.get(1), block),
                                target.rows(block[0], block[1]),
                                block[0])) {
                    made.launch(stream);
                }
            }
            stream.synchronize();
        }
        Matrix found = Matrix.allocate(arena, out, rows + 2, cols + 8);
        frame.download(found, stream);
        Matrix around = random(out, rows + 2, cols + 8, new Random(1));
        for (long r = 0; r < rows + 2; r++) {
            for (long c = 0; c < cols + 8; c++) {
                boolean inside = r > 0 && r <= rows && c >= 4 && c < cols + 4;
                float right = inside ? expected.get(r - 1, c - 4) : around.get(r, c);
                // A NaN's own bits are not promised.
                assertEquals(
                        Float.floatToIntBits(right),
                        Float.floatToIntBits(found.get(r, c)),
                        "'%s' to %s, %d ranks, [%d, %d], aligned %s, seed %d: row %d, column %d"
                                .formatted(
                                        text, out, ranks, rows, cols, aligned, seed, r - 1, c - 4));
            }
        }
        buffers.forEach(DeviceBuffer::close);
        buffers.clear();
    }

    private static List<DeviceMatrix> blockOf(List<DeviceMatrix> parts, long[] block) {
        return parts.stream().map(part -> part.rows(block[0], block[1])).toList();
    }

    private static Epilogue epilogue(String text, Matrix bias, Object residual) {
        return text.isEmpty()
                ? Epilogue.none()
                : Epilogue.parse(text, () -> bias, () -> residual, () -> bias, () -> bias, 1e-5);
    }

    /** Every step and type, odd widths, 1 to 8 ranks, any alignment. */
    @ParameterizedTest
    @EnumSource(names = {"FP32", "FP16", "BF16"})
    void bitsAreThoseOfTheCpu(DType out) {
        long seed = 31;
        for (String text : TEXTS) {
            for (int ranks = 1; ranks <= 8; ranks++) {
                long cols = new long[] {1, 3, 4, 65, 128, 257, 1030, 2048}[(int) (seed % 8)];
                check(text, out, ranks, 1 + seed % 23, cols, ranks % 3 > 0, seed++);
            }
            check(text, out, 1, 300, 516, true, seed++);
        }
    }

    /** A million values of every sign and exponent through each activation. */
    @ParameterizedTest
    @ValueSource(strings = {"gelu", "gelu-tanh", "silu"})
    void everyExponentGivesTheBitsOfTheCpu(String text) {
        long n = 1024;
        Matrix sums = Matrix.allocate(arena, DType.FP32, n, n);
        Random random = new Random(7);
        for (long r = 0; r < n; r++) {
            for (long c = 0; c < n; c++) {
                // Its top bits count through all signs and exponents.
                int bits = (int) (r * n + c) << 12 | random.nextInt(1 << 12);
                sums.set(r, c, Float.intBitsToFloat(bits));
            }
        }
        for (DType out : DType.UNSCALED) {
            Matrix expected = Matrix.allocate(arena, out, n, n);
            Epilogue epilogue = epilogue(text, null, null);
            epilogue.apply(List.of(sums), List.of(expected));
            DeviceMatrix target = device(out, n, n, true);
            try (DeviceEpilogue there = new DeviceEpilogue(gpu, epilogue.fitting(List.of(n)), n);
                    DeviceEpilogue.Rows rows =
                            there.rows(0, List.of(upload(sums, true)), List.of(), target, 0)) {
                rows.launch(stream);
                stream.synchronize();
            }
            Matrix found = Matrix.allocate(arena, out, n, n);
            target.download(found, stream);
            for (long r = 0; r < n; r++) {
                for (long c = 0; c < n; c++) {
                    float x = sums.get(r, c);
                    assertEquals(expected.get(r, c), found.get(r, c), () -> text + " of " + x);
                }
            }
        }
    }

    @Test
    void whatDoesNotFitIsRefused() {
        DeviceMatrix part = device(DType.FP32, 3, 8, true);
        Epilogue epilogue = Epilogue.none().residual(() -> part);
        assertMessage(
                "epilogue 'residual': residual is [3, 8] fp32: expected a DeviceMatrix [4, 8]",
                () -> new DeviceEpilogue(gpu, epilogue.fitting(List.of(8L)), 4));
        assertMessage(
                "epilogue 'residual': residual is null: expected a DeviceMatrix [4, 8]",
                () ->
                        new DeviceEpilogue(
                                gpu, Epilogue.none().residual(() -> null).fitting(List.of(8L)), 4));
        try (DeviceEpilogue there =
                new DeviceEpilogue(gpu, Epilogue.none().fitting(List.of(8L)), 3)) {
            assertMessage(
                    "epilogue '': parts [] and [] of [3, 8] fp32: expected 1 to 64 parts of its shape, all fp32 or all bf16, and none of a second product",
                    () -> there.rows(0, List.of(), List.of(), part, 0));
        }
    }

    private static void assertMessage(String message, Runnable call) {
        assertEquals(message, assertThrows(IllegalArgumentException.class, call::run).getMessage());
    }
}
