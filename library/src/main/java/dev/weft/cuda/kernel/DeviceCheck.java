package dev.weft.cuda.kernel;

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

    /** Room for each of a kernel's arguments, of which there are 12 at most. */
    private static final int ARGUMENT_BYTES = 16;

    private final Gpu gpu;
    private final GpuStream stream = GpuStream.create();
    private final DeviceBuffer verdict = DeviceBuffer.allocate(VERDICT_BYTES);
    private final Arena arena = Arena.ofShared();
    private final MemorySegment words = arena.allocate(VERDICT_BYTES, 8);
    private final MemorySegment arguments = arena.allocate(12 * ARGUMENT_BYTES, 16);
    private final MemorySegment pointers = arena.allocate(12 * 8, 8);

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
        launch(
                function,
                4 * gpu.multiprocessors(),
                1,
                matrix.address(),
                matrix.rows(),
                matrix.cols(),
                matrix.rowPitch(),
                seed,
                scale);
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
        reset();
        launch(
                function,
                Math.toIntExact(Math.ceilDiv(n, TILE)),
                Math.toIntExact(Math.min(65_535, Math.ceilDiv(a.rows(), TILE))),
                new long[] {a.address(), a.pitchBytes()},
                new long[] {b.address(), b.pitchBytes()},
                c.address(),
                c.rowPitch(),
                Math.toIntExact(a.rows()),
                Math.toIntExact(n),
                Math.toIntExact(a.cols()),
                relativeBound(a.cols()),
                verdict.address());
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
        reset();
        launch(
                function,
                4 * gpu.multiprocessors(),
                1,
                x.address(),
                y.address(),
                x.rows(),
                x.cols() * x.dtype().bytes(),
                x.pitchBytes(),
                y.pitchBytes(),
                verdict.address());
        return verdict();
    }

    private long function(DType in, DType out, boolean bTransposed, String name) {
        KernelVariants.Operands operands = GatedKernel.operands(in, out, bTransposed);
        return KernelCache.function(gpu, KernelVariants.check(operands, gpu.architecture()), name);
    }

    /**
     * @param values the kernel's arguments: numbers, and structures of two longs
     */
    private void launch(long function, int gridX, int gridY, Object... values) {
        for (int i = 0; i < values.length; i++) {
            long at = (long) ARGUMENT_BYTES * i;
            switch (values[i]) {
                case Long number -> arguments.set(JAVA_LONG, at, number);
                case Integer number -> arguments.set(JAVA_INT, at, number);
                case Float number -> arguments.set(JAVA_FLOAT, at, number);
                case long[] two -> MemorySegment.copy(two, 0, arguments, JAVA_LONG, at, 2);
                default -> throw new IllegalArgumentException("argument " + values[i]);
            }
            pointers.setAtIndex(JAVA_LONG, i, arguments.address() + at);
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
