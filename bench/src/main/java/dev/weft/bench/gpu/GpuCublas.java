package dev.weft.bench.gpu;

import dev.weft.bench.measure.Interleaved;
import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.kernel.DeviceEvent;
import dev.weft.ffi.CublasLt;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/**
 * The product of all rows by cublasLt alone, in the best of the ways that it proposes: as fast as a
 * product without any gather gets. Used by one thread.
 */
final class GpuCublas implements AutoCloseable {

    static final long WORKSPACE_BYTES = 32L << 20;
    static final int CANDIDATES = 8;

    private static final int WARMUP = 2;
    private static final int ROUNDS = 5;

    private final GpuBench bench;
    private final CublasLt.Product prepared;
    private final long a;
    private final long b;
    private final DeviceBuffer workspace;
    private final DeviceMatrix c;
    private final DeviceEvent begin = DeviceEvent.timed();
    private final DeviceEvent end = DeviceEvent.timed();
    private final int best;

    /**
     * @param prepared is closed with this
     * @param a the address of its values, like {@code b}
     */
    GpuCublas(GpuBench bench, CublasLt.Product prepared, long a, long b, DType out, long m, long n)
            throws IOException, InterruptedException {
        this.bench = bench;
        this.prepared = prepared;
        this.a = a;
        this.b = b;
        this.workspace = DeviceBuffer.allocate(WORKSPACE_BYTES + Matrix.contiguousBytes(out, m, n));
        this.c = new DeviceMatrix(workspace.address() + WORKSPACE_BYTES, out, m, n, n);
        List<Integer> candidates = IntStream.range(0, prepared.candidates()).boxed().toList();
        Interleaved.Outcome outcome =
                Interleaved.take(
                        candidates.stream()
                                .<Interleaved.Turn>map(each -> () -> takeNs(each))
                                .toList(),
                        WARMUP,
                        ROUNDS);
        best = candidates.stream().min(Comparator.comparingDouble(outcome::medianNs)).orElseThrow();
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
        begin.record(bench.stream());
        prepared.run(candidate, a, b, c.address(), workspace.address(), bench.stream().handle());
        end.record(bench.stream());
        bench.stream().synchronize();
        return end.nsSince(begin);
    }

    @Override
    public void close() {
        prepared.close();
        begin.close();
        end.close();
        workspace.close();
    }
}
