package dev.weft.compat;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.DeviceProgress;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.DeviceCheck;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.PeerFailedException;
import dev.weft.fabric.StallException;
import dev.weft.fabric.World;
import dev.weft.ffi.CudaMemory;
import dev.weft.tensor.DType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The Helion calls on a real GPU, which several ranks share. */
@Tag("gpu")
class HelionCudaIT {

    private static final Duration DEADLINE = Duration.ofSeconds(10);

    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    /** One rank's matrices, stream and judge. */
    private final class Bench implements AutoCloseable {
        private final List<DeviceBuffer> owned = new ArrayList<>();
        private final Fabric fabric;
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

    private static int[] words(DeviceProgress progress) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment host = arena.allocate(JAVA_INT, progress.size());
            CudaMemory.copyToHost(host, progress.address());
            return host.toArray(JAVA_INT);
        }
    }

    private static int[] ones(int count, int size) {
        int[] words = new int[size];
        Arrays.fill(words, 0, count, 1);
        return words;
    }

    @ParameterizedTest
    @CsvSource({
        "1, BF16, true, 288, 512, 208",
        "2, BF16, true, 384, 512, 208",
        "2, FP16, false, 192, 264, 392",
        "4, BF16, false, 192, 264, 392",
        "4, FP16, true, 120, 72, 64",
    })
    void gatheredAAndTheProductAreRight(
            int ranks, DType dtype, boolean transposed, long shardRows, long k, long n) {
        try (World world = World.threads(ranks, DEADLINE)) {
            world.run(
                    fabric -> {
                        try (Bench bench = new Bench(fabric, dtype, shardRows, k, n, transposed)) {
                            int call = 0;
                            for (int splits : new int[] {1, 2, 3, 8, 64}) {
                                allOwn(bench, splits, call++);
                                allFresh(bench, splits, call++);
                            }
                        }
                    });
        }
    }

    /** Gathered A, progress and stream are the caller's. */
    private void allOwn(Bench bench, int splits, long call) {
        int chunks = bench.fabric.size() * splits;
        String what = splits + " splits, call " + call;
        bench.fill(call);
        DeviceMatrix aOut = bench.matrix(bench.a.dtype(), bench.a.rows(), bench.a.cols());
        bench.check.poison(aOut);
        DeviceProgress progress = bench.progress(chunks + 3);
        try (HelionResult<DeviceMatrix> result =
                HelionCuda.allGatherMatmul(
                        bench.fabric,
                        gpu,
                        bench.shared,
                        bench.b,
                        bench.transposed,
                        aOut,
                        progress,
                        splits,
                        bench.stream)) {
            result.await();
            assertEquals(aOut, result.aOut(), what);
            bench.assertRight(aOut, result.c(), what);
            assertEquals(
                    Arrays.toString(ones(chunks, chunks + 3)),
                    Arrays.toString(words(progress)),
                    what);
        }
    }

    private void allFresh(Bench bench, int splits, long call) {
        bench.fill(call);
        try (HelionResult<DeviceMatrix> result =
                HelionCuda.allGatherMatmul(
                        bench.fabric,
                        gpu,
                        bench.shared,
                        bench.b,
                        bench.transposed,
                        null,
                        null,
                        splits,
                        bench.stream)) {
            result.await();
            bench.assertRight(result.aOut(), result.c(), splits + " splits, call " + call);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4})
    void theCopyEngineAndTheProductStandAlone(int ranks) {
        int splits = 4;
        try (World world = World.threads(ranks, DEADLINE)) {
            world.run(
                    fabric -> {
                        try (Bench bench = new Bench(fabric, DType.BF16, 256, 320, 264, false)) {
                            bench.fill(1);
                            DeviceMatrix output =
                                    bench.matrix(DType.BF16, bench.a.rows(), bench.a.cols());
                            bench.check.poison(output);
                            DeviceProgress progress = bench.progress(ranks * splits);
                            progress.reset(bench.stream);
                            try (HelionGather gather =
                                            HelionCuda.copyEngineAllGatherWithProgress(
                                                    output,
                                                    bench.shared,
                                                    progress,
                                                    splits,
                                                    bench.stream);
                                    HelionResult<DeviceMatrix> product =
                                            HelionCuda.matmulWithProgress(
                                                    output,
                                                    bench.shared,
                                                    bench.b,
                                                    false,
                                                    progress,
                                                    splits,
                                                    fabric.rank(),
                                                    bench.stream)) {
                                product.await();
                                gather.await();
                                bench.assertRight(output, product.c(), ranks + " ranks");
                                assertEquals(
                                        Arrays.toString(ones(ranks * splits, ranks * splits)),
                                        Arrays.toString(words(progress)));
                            }
                        }
                    });
        }
    }

    /** The caller fills A and publishes; one word stays 0 and ends the wait by its name. */
    @ParameterizedTest
    @ValueSource(ints = {0, 2})
    void aChunkThatIsNeverPublishedEndsTheProduct(int missing) {
        int splits = 3;
        try (World world = World.threads(1, Duration.ofMillis(300))) {
            world.run(
                    fabric -> {
                        try (Bench bench = new Bench(fabric, DType.FP16, 384, 128, 64, false)) {
                            DeviceProgress progress = bench.progress(splits);
                            progress.reset(bench.stream);
                            for (int split = 0; split < splits; split++) {
                                if (split != missing) {
                                    progress.publish(split, bench.stream);
                                }
                            }
                            try (HelionResult<DeviceMatrix> product =
                                    HelionCuda.matmulWithProgress(
                                            bench.a,
                                            bench.shared,
                                            bench.b,
                                            false,
                                            progress,
                                            splits,
                                            0,
                                            bench.stream)) {
                                StallException stall =
                                        assertThrows(StallException.class, product::await);
                                assertEquals(0, stall.source());
                                assertEquals(missing, stall.chunk());
                            }
                        }
                    });
        }
        gatheredAAndTheProductAreRight(2, DType.FP16, false, 192, 264, 392);
    }

    /** A rank that refuses does not leave the others waiting. */
    @Test
    void aRefusalOnOneRankEndsTheCallOnAll() {
        try (World world = World.threads(2, DEADLINE)) {
            IllegalArgumentException refusal =
                    assertThrows(
                            IllegalArgumentException.class,
                            () ->
                                    world.run(
                                            fabric -> {
                                                try (Bench bench =
                                                        new Bench(
                                                                fabric,
                                                                DType.BF16,
                                                                64,
                                                                64,
                                                                64,
                                                                false)) {
                                                    allFresh(bench, 1 + 4 * fabric.rank(), 1);
                                                }
                                            }));
            assertTrue(
                    refusal.getMessage().startsWith("4096 elements of [64, 64] in 5 splits"),
                    refusal.getMessage());
            assertInstanceOf(PeerFailedException.class, refusal.getSuppressed()[0]);
        }
    }

    @Test
    void shardsOfUnlikeShapeAreNamed() {
        try (World world = World.threads(2, DEADLINE)) {
            RuntimeException refusal =
                    assertThrows(
                            RuntimeException.class,
                            () ->
                                    world.run(
                                            fabric ->
                                                    HelionCuda.empty(
                                                            fabric,
                                                            gpu,
                                                            64,
                                                            64 + 8 * fabric.rank(),
                                                            DType.BF16)));
            assertTrue(
                    refusal.getMessage().contains("columns: 64 on rank 0 and 72 on rank 1"),
                    refusal.getMessage());
        }
    }
}
