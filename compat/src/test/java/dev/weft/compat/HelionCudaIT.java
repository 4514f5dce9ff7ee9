package dev.weft.compat;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.kernel.DeviceEvent;
import dev.weft.cuda.kernel.KernelFamily;
import dev.weft.cuda.kernel.PinnedBuffer;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.fabric.ChildJvm;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.FabricException.PeerFailedException;
import dev.weft.fabric.FabricException.StallException;
import dev.weft.fabric.World;
import dev.weft.fabric.memory.ShmJob;
import dev.weft.ffi.CudaMemory;
import dev.weft.ffi.DeviceMemory;
import dev.weft.gemm.Deviation;
import dev.weft.gemm.Float64Oracle;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.PackedB;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
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
    private interface Ranks {
        void run(Consumer<Bench> body);
    }

    private Ranks ranks(
            int count, DType dtype, long shardRows, long k, long n, boolean transposed) {
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
        ranks(ranks, dtype, shardRows, k, n, transposed)
                .run(
                        bench -> {
                            int call = 0;
                            for (int splits : new int[] {1, 2, 3, 8, 64}) {
                                int chunks = ranks * splits;
                                DeviceMatrix aOut = bench.matrix(dtype, bench.a.rows(), k);
                                bench.check.poison(aOut);
                                assertArrayEquals(
                                        ones(chunks, chunks + 3),
                                        bench.call(
                                                aOut, bench.progress(chunks + 3), splits, call++));
                                bench.call(null, null, splits, call++);
                            }
                        });
    }

    /** The others have words of their own, and of other numbers of splits. */
    @Test
    void progressMayBeGivenOnOneRankOnly() {
        int ranks = 3;
        ranks(ranks, DType.BF16, 192, 264, 392, false)
                .run(
                        bench -> {
                            for (int call = 0; call < 2 * ranks; call++) {
                                int rank = bench.fabric.rank();
                                int splits = 2 + call % 3;
                                int chunks = ranks * splits;
                                boolean given = rank == call % ranks;
                                DeviceProgress progress = given ? bench.progress(chunks) : null;
                                int[] seen = bench.call(null, progress, given ? splits : 1, call);
                                assertArrayEquals(given ? ones(chunks, chunks) : null, seen);
                            }
                        });
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4})
    void theCopyEngineAndTheProductStandAlone(int ranks) {
        int splits = 4;
        ranks(ranks, DType.BF16, 256, 320, 264, false)
                .run(
                        bench -> {
                            bench.fill(1);
                            DeviceMatrix output =
                                    bench.matrix(DType.BF16, bench.a.rows(), bench.a.cols());
                            bench.check.poison(output);
                            int words = ranks * splits + 1;
                            DeviceProgress progress = bench.progress(words);
                            progress.reset(bench.stream);
                            // One more than the chunks: the copy engine resets none.
                            progress.publish(words - 1, bench.stream);
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
                                                    bench.fabric.rank(),
                                                    bench.stream)) {
                                product.await();
                                gather.await();
                                bench.assertRight(output, product.c(), ranks + " ranks");
                                assertArrayEquals(ones(words, words), words(progress));
                            }
                        });
    }

    /** Gathered A is exact, and C has the bits of the CPU's product: both add k by k. */
    @ParameterizedTest
    @CsvSource({
        "1, FP32, FP32, false, 70, 33, 45",
        "2, FP32, FP32, true, 130, 100, 131",
        "3, FP16, BF16, false, 65, 77, 129",
        "2, BF16, FP16, true, 129, 64, 64",
        "4, BF16, FP32, false, 33, 200, 17",
        "2, FP32, FP16, true, 40, 1, 1",
        "2, BF16, BF16, false, 150, 67, 133",
        "3, FP16, FP16, true, 31, 129, 260",
        "2, BF16, BF16, false, 96, 64, 129",
    })
    void anyTypesAndSizesHaveTheBitsOfTheCpusProduct(
            int ranks, DType aType, DType bType, boolean transposed, long rows, long k, long n) {
        Arena arena = Arena.ofAuto();
        Matrix a = normal(arena, aType, rows * ranks, k, 0);
        Matrix b = normal(arena, bType, transposed ? n : k, transposed ? k : n, 1);
        DType type = DType.promote(aType, bType);
        Matrix golden = cpuProduct(arena, a, b, transposed, type);
        int splits = rows * k % 3 == 0 ? 3 : 1;
        try (World world = World.threads(ranks, DEADLINE)) {
            world.run(
                    fabric -> {
                        gpu.bind();
                        try (GpuStream stream = GpuStream.create();
                                DeviceBuffer bMemory = DeviceBuffer.allocate(b.elementBytes());
                                HelionShared<DeviceMatrix> shared =
                                        HelionCuda.empty(fabric, gpu, rows, k, aType)) {
                            shared.local().upload(a.rows(fabric.rank() * rows, rows), stream);
                            DeviceMatrix onGpu =
                                    new DeviceMatrix(
                                            bMemory.address(), bType, b.rows(), b.cols(), b.cols());
                            onGpu.upload(b, stream);
                            try (HelionResult<DeviceMatrix> result =
                                    HelionCuda.allGatherMatmul(
                                            fabric,
                                            gpu,
                                            shared,
                                            onGpu,
                                            transposed,
                                            null,
                                            null,
                                            splits,
                                            stream)) {
                                result.await();
                                assertEquals(type, result.c().dtype());
                                assertTrue(download(arena, result.aOut(), stream).bitwiseEquals(a));
                                Matrix c = download(arena, result.c(), stream);
                                if (KernelFamily.suitTensorCores(result.aOut(), onGpu, type)) {
                                    Deviation deviation =
                                            new Float64Oracle(a, b, transposed).check(c, 0, 5);
                                    assertTrue(deviation.withinBound(), deviation.describe());
                                } else {
                                    assertTrue(c.bitwiseEquals(golden), "bits of the CPU");
                                }
                            }
                        }
                    });
        }
    }

    private static Matrix normal(Arena arena, DType dtype, long rows, long cols, long stream) {
        Matrix matrix = Matrix.allocate(arena, dtype, rows, cols);
        new NormalData(5, stream).fill(matrix);
        return matrix;
    }

    private static Matrix cpuProduct(Arena arena, Matrix a, Matrix b, boolean trans, DType type) {
        Gemm gemm = Gemms.byName("scalar");
        PackedB packed = gemm.pack(b, trans, arena);
        Matrix c = Matrix.allocate(arena, type, a.rows(), packed.n());
        gemm.multiply(a, 0, a.rows(), packed, c, 0, gemm.scratch(a.cols(), packed.n(), arena));
        return c;
    }

    private static Matrix download(Arena arena, DeviceMatrix from, GpuStream stream) {
        Matrix to = Matrix.allocate(arena, from.dtype(), from.rows(), from.cols());
        from.download(to, stream);
        return to;
    }

    /** The source's own test at its own size, held to the bits of the fused operator. */
    @ParameterizedTest
    @ValueSource(ints = {4, 8})
    void theOriginalsTestAtItsFullSize(int ranks) {
        long m = 4096;
        long n = 6656;
        long k = 16384;
        try (World world = World.threads(ranks, DEADLINE);
                DeviceCheck check = new DeviceCheck(gpu);
                DeviceBuffer aMemory = DeviceBuffer.allocate(2 * m * k);
                DeviceBuffer bMemory = DeviceBuffer.allocate(2 * n * k)) {
            DeviceMatrix a = new DeviceMatrix(aMemory.address(), DType.BF16, m, k, k);
            DeviceMatrix b = new DeviceMatrix(bMemory.address(), DType.BF16, n, k, k);
            long rows = m / ranks;
            for (int r = 0; r < ranks; r++) {
                check.fillNormal(a.rows(r * rows, rows), 42 + r, 1);
            }
            check.fillNormal(b, 41, 1);
            world.run(fabric -> fullSize(fabric, a, b));
        }
    }

    private void fullSize(Fabric fabric, DeviceMatrix a, DeviceMatrix b) {
        gpu.bind();
        int rank = fabric.rank();
        long rows = a.rows() / fabric.size();
        DeviceMatrix own = a.rows(rank * rows, rows);
        try (DeviceCheck check = new DeviceCheck(gpu);
                GpuStream stream = GpuStream.create();
                HelionShared<DeviceMatrix> shared =
                        HelionCuda.empty(fabric, gpu, rows, a.cols(), DType.BF16);
                CudaAllGatherMatmul fused =
                        CudaAllGatherMatmul.on(fabric, gpu)
                                .a(Shards.even(a.rows(), fabric.size()), DType.BF16)
                                .b(b, true)
                                .output(DType.BF16)
                                .algorithm(Algorithm.MESH_PULL)
                                .prepare()) {
            shared.local().copyFrom(own, stream);
            try (HelionResult<DeviceMatrix> result =
                    HelionCuda.allGatherMatmul(
                            fabric, gpu, shared, b, true, null, null, 1, stream)) {
                result.await();
                fused.call(own);
                assertEquals(0, check.equal(result.aOut(), a).mismatches(), "gathered A");
                assertEquals(
                        0, check.equal(result.c(), fused.product(0)).mismatches(), "fused bits");
                if (rank == 0) {
                    DeviceCheck.Verdict verdict = check.product(a, b, true, result.c());
                    assertTrue(verdict.passed(), verdict.toString());
                }
                fabric.barrier();
            }
        }
    }

    /** Every tiling that the card's kernel has gives the same bits; others are refused. */
    @Test
    void tilingsAreChosenAndDoNotChangeBits() {
        int stages = gpu.capability() / 10 == 9 ? 4 : 3;
        List<Helion.Config> configs =
                gpu.capability() / 10 == 9
                        ? List.of(
                                Helion.Config.EXAMPLE,
                                new Helion.Config(128, 256, 64, 8, 4),
                                new Helion.Config(128, 192, 64, 8, 3),
                                new Helion.Config(128, 192, 64, 8, 4),
                                new Helion.Config(128, 128, 64, 8, 3),
                                new Helion.Config(128, 128, 64, 8, 4))
                        : List.of(new Helion.Config(128, 128, 64, 8, 3));
        ranks(2, DType.BF16, 300, 328, 712, true)
                .run(
                        bench -> {
                            bench.fill(1);
                            DeviceMatrix first = bench.matrix(DType.BF16, 600, 712);
                            configured(bench, first, null);
                            for (Helion.Config config : configs) {
                                DeviceMatrix c = bench.matrix(DType.BF16, 600, 712);
                                configured(bench, c, config);
                                assertEquals(
                                        0,
                                        bench.check.equal(c, first).mismatches(),
                                        config.toString());
                            }
                        });
        Helion.Config none = new Helion.Config(64, 64, 64, 4, 2);
        String message =
                refused(1, bench -> configured(bench, bench.matrix(DType.BF16, 64, 64), none))
                        .getMessage();
        String says = "tiles of 64 x 64 x 64 by 4 warps in 2 stages: expected";
        assertTrue(message.startsWith(says), message);
        assertTrue(message.contains("by 8 warps in " + stages + " stages"), message);
    }

    private void configured(Bench bench, DeviceMatrix c, Helion.Config config) {
        bench.check.poison(c);
        try (HelionResult<DeviceMatrix> result = bench.start(null, c, null, 4, config)) {
            result.await();
            assertEquals(c, result.c());
            bench.assertRight(result.aOut(), c, "config " + config);
        }
    }

    /** What ranks with shards of [64, 64] bf16 are refused. */
    private IllegalArgumentException refused(int ranks, Consumer<Bench> body) {
        return assertThrows(
                IllegalArgumentException.class,
                () -> ranks(ranks, DType.BF16, 64, 64, 64, true).run(body));
    }

    /**
     * Calls without any wait of the host: each one's input is written, and its results are read, on
     * the stream alone.
     */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4})
    void callsFollowEachOtherInStreamOrder(int ranks) {
        int calls = 8;
        long rows = 256;
        long k = 512;
        long n = 264;
        long m = rows * ranks;
        ranks(ranks, DType.BF16, rows, k, n, false)
                .run(
                        bench -> {
                            List<DeviceMatrix> inputs = new ArrayList<>();
                            List<DeviceMatrix> gathered = new ArrayList<>();
                            List<DeviceMatrix> products = new ArrayList<>();
                            bench.fill(0);
                            for (int call = 0; call < calls; call++) {
                                inputs.add(bench.matrix(DType.BF16, m, k));
                                bench.check.fillNormal(inputs.getLast(), 1000 + call, 1);
                                gathered.add(bench.matrix(DType.BF16, m, k));
                                products.add(bench.matrix(DType.BF16, m, n));
                            }
                            for (int call = 0; call < calls; call++) {
                                DeviceMatrix own =
                                        inputs.get(call).rows(bench.fabric.rank() * rows, rows);
                                bench.shared.local().copyFrom(own, bench.stream);
                                try (HelionResult<DeviceMatrix> result =
                                        bench.start(1 + call % 2)) {
                                    gathered.get(call).copyFrom(result.aOut(), bench.stream);
                                    products.get(call).copyFrom(result.c(), bench.stream);
                                }
                            }
                            bench.stream.synchronize();
                            for (int call = 0; call < calls; call++) {
                                String what = ranks + " ranks, call " + call;
                                DeviceMatrix a = inputs.get(call);
                                assertEquals(
                                        0,
                                        bench.check.equal(gathered.get(call), a).mismatches(),
                                        what);
                                DeviceCheck.Verdict verdict =
                                        bench.check.product(a, bench.b, false, products.get(call));
                                assertTrue(verdict.passed(), what + ": " + verdict);
                            }
                        });
    }

    /** The call is back while much work that was queued before it is still to be done. */
    @Test
    void theHostWaitsForNoStream() {
        long bytes = 1L << 32;
        try (DeviceBuffer much = DeviceBuffer.allocate(bytes)) {
            ranks(2, DType.BF16, 256, 512, 264, false)
                    .run(
                            bench -> {
                                try (DeviceEvent before = new DeviceEvent()) {
                                    bench.call(null, null, 1, 1);
                                    bench.fill(2);
                                    for (int i = 0; i < 400; i++) {
                                        CudaMemory.fill8Async(
                                                much.address(),
                                                (byte) i,
                                                bytes,
                                                bench.stream.handle());
                                    }
                                    before.record(bench.stream);
                                    try (HelionResult<DeviceMatrix> result = bench.start(1)) {
                                        boolean stillBusy = !before.isDone();
                                        result.await();
                                        assertTrue(stillBusy, "the call waited for its stream");
                                        bench.assertRight(
                                                result.aOut(), result.c(), "after much work");
                                    }
                                }
                            });
        }
    }

    /** What the caller does not bring is the same again, call after call: nothing new is made. */
    @Test
    void aCallLikeAnEarlierOneReservesNothing() {
        ranks(2, DType.BF16, 256, 512, 264, false)
                .run(
                        bench -> {
                            bench.call(null, null, 4, 0);
                            bench.fill(1);
                            bench.fabric.barrier();
                            long before = DeviceMemory.free();
                            // Nobody calls before all have counted.
                            bench.fabric.barrier();
                            for (int call = 0; call < 20; call++) {
                                try (HelionResult<DeviceMatrix> result = bench.start(4)) {
                                    result.await();
                                }
                            }
                            bench.fabric.barrier();
                            assertEquals(
                                    before,
                                    DeviceMemory.free(),
                                    "free device memory before and after 20 calls");
                            bench.fabric.barrier();
                            bench.call(null, null, 4, 2);
                        });
    }

    /**
     * Progress in host memory that the GPU reaches, so that the words of a call can be watched. The
     * stream has work to do before the copies, so that the call is back and looks by then.
     */
    @ParameterizedTest
    @ValueSource(ints = {2, 4})
    void theSuccessorIsPulledFirstAndTheOwnShardLast(int ranks) {
        int splits = 8;
        int chunks = ranks * splits;
        long bytes = 1L << 32;
        try (DeviceBuffer much = DeviceBuffer.allocate(bytes)) {
            ranks(ranks, DType.BF16, 8192, 8192, 64, false)
                    .run(
                            bench -> {
                                try (PinnedBuffer words = PinnedBuffer.allocate(4L * chunks)) {
                                    bench.fill(1);
                                    DeviceProgress progress =
                                            new DeviceProgress(
                                                    CudaMemory.hostDevicePointer(words.segment()),
                                                    chunks);
                                    boolean seen = false;
                                    for (int call = 0; call < 20 && !seen; call++) {
                                        words.segment().fill((byte) 0);
                                        for (int i = 0; i < 40; i++) {
                                            CudaMemory.fill8Async(
                                                    much.address(),
                                                    (byte) i,
                                                    bytes,
                                                    bench.stream.handle());
                                        }
                                        int partial = watchedCall(bench, progress, words, splits);
                                        long[] all = bench.fabric.exchange(partial);
                                        seen = Arrays.stream(all).allMatch(states -> states > 0);
                                    }
                                    assertTrue(seen, "no gather was seen half done on every rank");
                                }
                            });
        }
    }

    private int watchedCall(Bench bench, DeviceProgress progress, PinnedBuffer words, int splits) {
        try (HelionResult<DeviceMatrix> result = bench.start(null, null, progress, splits, null)) {
            int partial = watch(words.segment(), bench.fabric.rank(), bench.fabric.size(), splits);
            result.await();
            bench.assertRight(result.aOut(), result.c(), "watched");
            return partial;
        }
    }

    /** How many states were seen on the way; each is a beginning of the order of the pulls. */
    private static int watch(MemorySegment words, int rank, int ranks, int splits) {
        Set<Integer> states = new HashSet<>();
        long start = System.nanoTime();
        int there = 0;
        while (there < ranks * splits) {
            assertTrue(System.nanoTime() - start < DEADLINE.toNanos(), there + " chunks came");
            int[] seen = new int[ranks * splits];
            // From the last to the first: whatever is there stays there.
            for (int i = seen.length - 1; i >= 0; i--) {
                int source = (rank + 1 + i / splits) % ranks;
                long word = 4L * (source * splits + i % splits);
                seen[i] = (int) JAVA_INT.varHandle().getAcquire(words, word);
            }
            there = Arrays.stream(seen).sum();
            for (int i = 0; i < there; i++) {
                assertEquals(1, seen[i], "in the order of the pulls: " + Arrays.toString(seen));
            }
            states.add(there);
        }
        states.remove(0);
        states.remove(ranks * splits);
        return states.size();
    }

    /** Ranks that are processes: memory and events of peers by CUDA's interprocess handles. */
    @ParameterizedTest
    @ValueSource(ints = {2, 4})
    void processesReachEachOthersShards(int ranks) {
        List<ChildJvm> children = new ArrayList<>();
        try (ShmJob job = ShmJob.create()) {
            for (int rank = 0; rank < ranks; rank++) {
                children.add(
                        ChildJvm.start(
                                HelionCudaChild.class, job.environment(rank, ranks, DEADLINE)));
            }
            for (int rank = 0; rank < ranks; rank++) {
                ChildJvm child = children.get(rank);
                assertEquals(0, child.exitCode(), () -> child.output().toString());
                assertTrue(
                        child.output().contains("rank " + rank + ": all calls are right"),
                        () -> child.output().toString());
            }
        } finally {
            children.forEach(ChildJvm::close);
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
        IllegalArgumentException refusal =
                refused(2, bench -> bench.call(null, null, 1 + 4 * bench.fabric.rank(), 1));
        assertTrue(
                refusal.getMessage().startsWith("4096 elements of [64, 64] in 5 splits"),
                refusal.getMessage());
        assertInstanceOf(PeerFailedException.class, refusal.getSuppressed()[0]);
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
