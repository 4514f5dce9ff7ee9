package dev.weft.cuda.exec;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.ffi.CudaMemory;
import dev.weft.ffi.CudaModules;
import dev.weft.tensor.DType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Fills and judges matrices on the device, with simple kernels that share no arithmetic with those
 * they judge: a plain fp32 sum for every element of a product. One thread at a time.
 */
public final class DeviceCheck implements AutoCloseable {

    private static final int THREADS = 256;
    private static final int TILE = 64;
    private static final int VERDICT_BYTES = 24;

    private final Gpu gpu;
    private final GpuStream stream = GpuStream.create();
    private final DeviceBuffer verdict = DeviceBuffer.allocate(VERDICT_BYTES);
    private final Arena arena = Arena.ofShared();
    private final MemorySegment words = arena.allocate(VERDICT_BYTES, 8);
    private final MemorySegment arguments = arena.allocate(128, 16);
    private final MemorySegment pointers = arena.allocate(8 * 12, 8);

    /** Loads nothing yet; the GPU must be bound. */
    public DeviceCheck(Gpu gpu) {
        this.gpu = gpu;
    }

    /**
     * @param mismatches elements, or bytes, that are wrong
     * @param firstIndex the first of them, counted row by row
     * @param worst the largest deviation in units of its bound
     */
    public record Verdict(long mismatches, long firstIndex, double worst) {

        public boolean passed() {
            return mismatches == 0;
        }
    }

    /** Fills with nearly normal values of deviation {@code scale}, the same for the same seed. */
    public void fillNormal(DeviceMatrix matrix, long seed, float scale) {
        if (matrix.rows() == 0 || matrix.cols() == 0) {
            return;
        }
        long function = function(matrix.dtype(), matrix.dtype(), false, "fill_normal");
        arguments.set(JAVA_LONG, 0, matrix.address());
        arguments.set(JAVA_LONG, 8, matrix.rows());
        arguments.set(JAVA_LONG, 16, matrix.cols());
        arguments.set(JAVA_LONG, 24, matrix.rowPitch());
        arguments.set(JAVA_LONG, 32, seed);
        arguments.set(JAVA_FLOAT, 40, scale);
        launch(function, 4 * gpu.multiprocessors(), 1, 0, 8, 16, 24, 32, 40);
        stream.synchronize();
    }

    /** Overwrites with bytes that no product gives: all bits set is not a number. */
    public void poison(DeviceMatrix matrix) {
        if (matrix.rows() == 0) {
            return;
        }
        CudaMemory.fill8Async(
                matrix.address(),
                (byte) 0xFF,
                matrix.rows() * matrix.pitchBytes(),
                stream.handle());
        stream.synchronize();
    }

    /**
     * Compares every element of C with a plain fp32 sum.
     *
     * @param b [K, N], or [N, K] if {@code bTransposed}
     */
    public Verdict product(DeviceMatrix a, DeviceMatrix b, boolean bTransposed, DeviceMatrix c) {
        long n = bTransposed ? b.rows() : b.cols();
        if (c.rows() != a.rows() || c.cols() != n) {
            throw new IllegalArgumentException(
                    "product %s of %s and %s: expected [%s, %s]"
                            .formatted(c.describe(), a.describe(), b.describe(), a.rows(), n));
        }
        if (c.rows() == 0) {
            return new Verdict(0, -1, 0);
        }
        long function = function(a.dtype(), c.dtype(), bTransposed, "check_product");
        source(0, a);
        source(16, b);
        arguments.set(JAVA_LONG, 32, c.address());
        arguments.set(JAVA_LONG, 40, c.rowPitch());
        arguments.set(JAVA_INT, 48, Math.toIntExact(a.rows()));
        arguments.set(JAVA_INT, 52, Math.toIntExact(n));
        arguments.set(JAVA_INT, 56, Math.toIntExact(a.cols()));
        arguments.set(JAVA_FLOAT, 60, relativeBound(a.cols()));
        arguments.set(JAVA_LONG, 64, verdict.address());
        reset();
        launch(
                function,
                Math.toIntExact(Math.ceilDiv(n, TILE)),
                Math.toIntExact(Math.min(65_535, Math.ceilDiv(a.rows(), TILE))),
                0,
                16,
                32,
                40,
                48,
                52,
                56,
                60,
                64);
        return verdict();
    }

    /** Two fp32 sums of k terms in different orders differ by k units in the last place at most. */
    private static float relativeBound(long k) {
        return (float) ((k + 16) * 0x1p-23);
    }

    /** Whether two matrices of the same shape are equal byte for byte. */
    public Verdict equal(DeviceMatrix x, DeviceMatrix y) {
        if (x.rows() != y.rows() || x.cols() != y.cols() || x.dtype() != y.dtype()) {
            throw new IllegalArgumentException(
                    x.describe() + " compared with " + y.describe() + ": expected equal shapes");
        }
        if (x.rows() == 0 || x.cols() == 0) {
            return new Verdict(0, -1, 0);
        }
        long function = function(DType.FP16, DType.FP16, false, "compare_bytes");
        arguments.set(JAVA_LONG, 0, x.address());
        arguments.set(JAVA_LONG, 8, y.address());
        arguments.set(JAVA_LONG, 16, x.rows());
        arguments.set(JAVA_LONG, 24, x.cols() * x.dtype().bytes());
        arguments.set(JAVA_LONG, 32, x.pitchBytes());
        arguments.set(JAVA_LONG, 40, y.pitchBytes());
        arguments.set(JAVA_LONG, 48, verdict.address());
        reset();
        launch(function, 4 * gpu.multiprocessors(), 1, 0, 8, 16, 24, 32, 40, 48);
        return verdict();
    }

    private long function(DType in, DType out, boolean bTransposed, String name) {
        KernelVariants.Operands operands = GatedKernel.operands(in, out, bTransposed);
        return KernelCache.function(gpu, KernelVariants.check(operands, gpu.architecture()), name);
    }

    private void source(long at, DeviceMatrix matrix) {
        arguments.set(JAVA_LONG, at, matrix.address());
        arguments.set(JAVA_LONG, at + 8, matrix.pitchBytes());
    }

    private void launch(long function, int gridX, int gridY, long... offsets) {
        for (int i = 0; i < offsets.length; i++) {
            pointers.setAtIndex(JAVA_LONG, i, arguments.address() + offsets[i]);
        }
        CudaModules.launch(function, gridX, gridY, THREADS, 0, stream.handle(), pointers, 1);
    }

    private void reset() {
        words.set(JAVA_LONG, 0, 0);
        words.set(JAVA_LONG, 8, -1);
        words.set(JAVA_LONG, 16, 0);
        CudaMemory.copyToDevice(verdict.address(), words);
    }

    private Verdict verdict() {
        stream.synchronize();
        CudaMemory.copyToHost(words, verdict.address());
        return new Verdict(
                words.get(JAVA_LONG, 0), words.get(JAVA_LONG, 8), words.get(JAVA_FLOAT, 16));
    }

    @Override
    public void close() {
        verdict.close();
        stream.close();
        arena.close();
    }
}
