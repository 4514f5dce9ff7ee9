package dev.weft.bench.gpu;

import dev.weft.bench.measure.Interleaved;
import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.ffi.CublasLt;
import dev.weft.ffi.CudaStreams;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.util.Comparator;
import java.util.List;
import java.util.function.IntToLongFunction;
import java.util.stream.IntStream;

/**
 * The product of all rows by cublasLt alone, in the best of the ways that it proposes: as fast as a
 * product without any gather gets. Used by one thread.
 */
final class GpuCublas implements AutoCloseable {

    private static final long WORKSPACE_BYTES = 32L << 20;
    private static final int CANDIDATES = 8;
    private static final int WARMUP = 2;
    private static final int ROUNDS = 5;

    private final GpuBench bench;
    private final GpuData data;
    private final DeviceBuffer buffer;
    private final DeviceMatrix c;
    private final long workspace;
    private final CublasLt.Product product;
    private final long begin = CudaStreams.createEvent(true, false);
    private final long end = CudaStreams.createEvent(true, false);
    private final int best;

    GpuCublas(GpuBench bench, GpuData data, DType out) throws IOException, InterruptedException {
        this.bench = bench;
        this.data = data;
        long m = data.a().rows();
        long n = data.b().cols();
        long k = data.b().rows();
        product =
                CublasLt.prepare(
                        data.a().dtype() == DType.BF16,
                        out == DType.FP32,
                        m,
                        n,
                        k,
                        k,
                        false,
                        n,
                        n,
                        WORKSPACE_BYTES,
                        CANDIDATES);
        buffer = DeviceBuffer.allocate(WORKSPACE_BYTES + Matrix.contiguousBytes(out, m, n));
        workspace = buffer.address();
        c = new DeviceMatrix(workspace + WORKSPACE_BYTES, out, m, n, n);
        best = fastest(product.candidates(), this::takeNs);
    }

    /** The fastest of cublasLt's proposals, from 0. */
    static int fastest(int count, IntToLongFunction takeNs)
            throws IOException, InterruptedException {
        List<Integer> candidates = IntStream.range(0, count).boxed().toList();
        Interleaved.Outcome outcome =
                Interleaved.take(
                        candidates.stream()
                                .<Interleaved.Turn>map(each -> () -> takeNs.applyAsLong(each))
                                .toList(),
                        WARMUP,
                        ROUNDS);
        return candidates.stream().min(Comparator.comparingDouble(outcome::medianNs)).orElseThrow();
    }

    DeviceMatrix product() {
        return c;
    }

    /** Which of its proposals was the fastest, from 0. */
    int best() {
        return best;
    }

    /** One product; its time on the device. */
    long takeNs() {
        return takeNs(best);
    }

    private long takeNs(int candidate) {
        long stream = bench.stream().handle();
        CudaStreams.record(begin, stream);
        product.run(
                candidate, data.a().address(), data.b().address(), c.address(), workspace, stream);
        CudaStreams.record(end, stream);
        CudaStreams.synchronizeEvent(end);
        return Math.round(1e6 * CudaStreams.elapsedMs(begin, end));
    }

    @Override
    public void close() {
        product.close();
        CudaStreams.destroyEvent(begin);
        CudaStreams.destroyEvent(end);
        buffer.close();
    }
}
