package dev.weft.compat;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.ffi.CudaMemory;
import dev.weft.tensor.DType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.BeforeEach;

/** Helion tests on a real GPU, which several ranks share. */
abstract class HelionOnGpu {

    static final Duration DEADLINE = Duration.ofSeconds(10);

    Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    /** One rank's matrices, stream and judge. */
    final class Bench implements AutoCloseable {
        private final List<DeviceBuffer> owned = new ArrayList<>();
        final Fabric fabric;
        final DeviceCheck check;
        final GpuStream stream;
        final HelionShared<DeviceMatrix> shared;

        /** All of A, as every rank should gather it. */
        final DeviceMatrix a;

        final DeviceMatrix b;
        final boolean transposed;

        Bench(Fabric fabric, DType dtype, long shardRows, long k, long n, boolean transposed) {
            gpu.bind();
            this.fabric = fabric;
            this.check = new DeviceCheck(gpu);
            this.stream = GpuStream.create();
            this.shared = HelionCuda.empty(fabric, gpu, shardRows, k, dtype);
            this.a = matrix(dtype, shardRows * fabric.size(), k);
            this.b = transposed ? matrix(dtype, n, k) : matrix(dtype, k, n);
            this.transposed = transposed;
        }

        DeviceMatrix matrix(DType dtype, long rows, long cols) {
            owned.add(DeviceBuffer.allocate(rows * cols * dtype.bytes()));
            return new DeviceMatrix(owned.getLast().address(), dtype, rows, cols, cols);
        }

        /** Words that hold anything but what a product waits for. */
        DeviceProgress progress(int words) {
            owned.add(DeviceBuffer.allocate(4L * words));
            CudaMemory.fill32Async(owned.getLast().address(), -7, words, stream.handle());
            return new DeviceProgress(owned.getLast().address(), words);
        }

        /** Other data for each call: what an earlier one left behind is wrong. */
        void fill(long call) {
            for (int r = 0; r < fabric.size(); r++) {
                check.fillNormal(a.rows(r * shared.rows(), shared.rows()), 100 * call + r, 1);
            }
            check.fillNormal(shared.local(), 100 * call + fabric.rank(), 1);
            check.fillNormal(b, 100 * call + 99, 1);
        }

        /** The call; what is null is its own. */
        HelionResult<DeviceMatrix> start(
                DeviceMatrix aOut,
                DeviceMatrix c,
                DeviceProgress progress,
                int splits,
                Helion.Config config) {
            return HelionCuda.allGatherMatmul(
                    fabric, gpu, shared, b, transposed, aOut, c, progress, splits, config, stream);
        }

        HelionResult<DeviceMatrix> start(int splits) {
            return start(null, null, null, splits, null);
        }

        /** A call with data of its own; returns the words of the progress that it was given. */
        int[] call(DeviceMatrix aOut, DeviceProgress progress, int splits, long call) {
            String what = splits + " splits, call " + call;
            fill(call);
            try (HelionResult<DeviceMatrix> result = start(aOut, null, progress, splits, null)) {
                result.await();
                assertTrue(aOut == null || aOut.equals(result.aOut()), what);
                assertRight(result.aOut(), result.c(), what);
            }
            return progress == null ? null : words(progress);
        }

        void assertRight(DeviceMatrix gathered, DeviceMatrix c, String what) {
            assertEquals(0, check.equal(gathered, a).mismatches(), what);
            DeviceCheck.Verdict verdict = check.product(a, b, transposed, c);
            assertTrue(verdict.passed(), what + ": " + verdict);
            assertEquals(a.dtype(), c.dtype(), what);
        }

        @Override
        public void close() {
            shared.close();
            owned.forEach(DeviceBuffer::close);
            stream.close();
            check.close();
        }
    }

    /** Ranks that share the GPU, each with a bench. */
    interface Ranks {
        void run(Consumer<Bench> body);
    }

    Ranks ranks(int count, DType dtype, long shardRows, long k, long n, boolean transposed) {
        return body -> {
            try (World world = World.threads(count, DEADLINE)) {
                world.run(
                        fabric -> {
                            try (Bench bench =
                                    new Bench(fabric, dtype, shardRows, k, n, transposed)) {
                                body.accept(bench);
                            }
                        });
            }
        };
    }

    static int[] words(DeviceProgress progress) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment host = arena.allocate(JAVA_INT, progress.size());
            CudaMemory.copyToHost(host, progress.address());
            return host.toArray(JAVA_INT);
        }
    }

    static int[] ones(int count, int size) {
        int[] words = new int[size];
        Arrays.fill(words, 0, count, 1);
        return words;
    }

    /** What ranks with shards of [64, 64] bf16 are refused. */
    IllegalArgumentException refused(int ranks, Consumer<Bench> body) {
        return assertThrows(
                IllegalArgumentException.class,
                () -> ranks(ranks, DType.BF16, 64, 64, 64, true).run(body));
    }
}
