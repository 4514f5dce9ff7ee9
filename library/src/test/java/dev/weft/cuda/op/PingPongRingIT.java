package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CopyStreams;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.kernel.PinnedBuffer;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.World;
import dev.weft.op.Operator.PendingCall;
import dev.weft.plan.Plan;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A ring whose shards land in two buffers, on a real GPU. */
@Tag("gpu")
class PingPongRingIT {

    private static final Duration DEADLINE = Duration.ofSeconds(5);
    private static final long K = 264;
    private static final long N = 392;

    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    private static DeviceProblem problem(Arena arena, Shards shards) {
        return DeviceProblem.random(arena, shards, K, N, DType.BF16, DType.FP32, false);
    }

    /** The product's bits, by one rank that has all rows. */
    static Matrix golden(Arena arena, DeviceProblem problem, Gpu gpu) {
        Matrix a = problem.a();
        DeviceProblem alone =
                new DeviceProblem(
                        Shards.of(a.rows()), a, problem.b(), problem.transposed(), problem.out());
        long n = problem.transposed() ? problem.b().rows() : problem.b().cols();
        Matrix c = Matrix.allocate(arena, problem.out(), a.rows(), n);
        try (World world = World.threads(1, DEADLINE)) {
            world.run(
                    fabric -> {
                        gpu.bind();
                        try (CudaAllGatherMatmul op =
                                        alone.describe(CudaAllGatherMatmul.on(fabric, gpu))
                                                .algorithm(dev.weft.plan.Algorithm.SEQUENTIAL)
                                                .prepare();
                                GpuStream stream = GpuStream.create()) {
                            op.nextShard().upload(a, stream);
                            op.call(op.nextShard());
                            op.product(0).download(c, stream);
                        }
                    });
        }
        return c;
    }

    private static Shards shards(int ranks, boolean uneven) {
        return uneven
                ? Shards.of(
                        LongStream.range(0, ranks)
                                .map(r -> r % 4 == 2 ? 0 : 40 + 90 * (r % 3))
                                .toArray())
                : Shards.even(160L * ranks, ranks);
    }

    @ParameterizedTest
    @CsvSource({"1, 1", "2, 1", "2, 2", "3, 1", "3, 2", "4, 1", "4, 2", "8, 1", "8, 2", "5, 4"})
    void theProductHasTheBitsOfOneRank(int ranks, int lanes) {
        try (Arena arena = Arena.ofShared()) {
            for (boolean uneven : new boolean[] {false, true}) {
                DeviceProblem problem = problem(arena, shards(ranks, uneven));
                Matrix golden = golden(arena, problem, gpu);
                run(problem, golden, lanes, "gated", 0);
                run(problem, golden, lanes, "gated", 7);
            }
        }
    }

    private void run(
            DeviceProblem problem, Matrix golden, int lanes, String engine, long chunkRows) {
        try (World world = World.threads(problem.shards().ranks(), DEADLINE)) {
            world.run(
                    fabric -> {
                        gpu.bind();
                        CudaAllGatherMatmulBuilder builder =
                                problem.describe(CudaAllGatherMatmul.on(fabric, gpu))
                                        .engine(engine)
                                        .pingPong(lanes);
                        if (chunkRows > 0) {
                            builder.chunkRows(chunkRows);
                        }
                        try (CudaAllGatherMatmul op = builder.prepare();
                                DeviceCheck check = new DeviceCheck(gpu);
                                GpuStream stream = GpuStream.create()) {
                            Matrix shard = problem.shard(fabric.rank());
                            for (int call = 0; call < 5; call++) {
                                if (call == 3) {
                                    op.callInPlace(View.COMM_ONLY);
                                    op.callInPlace(View.COMPUTE_ONLY);
                                }
                                op.nextShard().upload(shard, stream);
                                check.poison(op.product(0));
                                assertTrue(op.call(op.nextShard()).gathered().isEmpty());
                                assertBits(golden, op, stream);
                            }
                            assertSpans(op);
                            fabric.barrier();
                        }
                    });
        }
    }

    private static void assertBits(Matrix golden, CudaAllGatherMatmul op, GpuStream stream) {
        try (Arena arena = Arena.ofConfined()) {
            Matrix c = Matrix.allocate(arena, golden.dtype(), golden.rows(), golden.cols());
            op.product(0).download(c, stream);
            assertEquals(-1, golden.firstDifferentRow(c), op.plan().name());
        }
    }

    /** A span for every copy and for every shard that has rows, within the call. */
    private static void assertSpans(CudaAllGatherMatmul op) {
        Timeline timeline = op.lastResult().timeline();
        Plan plan = op.plan();
        Shards shards = plan.chunks().shards();
        List<Timeline.Span> spans =
                timeline.tracks().stream().flatMap(track -> track.spans().stream()).toList();
        long copies = spans.stream().filter(s -> s.kind() == Timeline.Kind.TRANSFER).count();
        assertEquals(op.copiesPerCall(), copies);
        Set<Integer> multiplied =
                spans.stream()
                        .filter(s -> s.kind() == Timeline.Kind.COMPUTE)
                        .map(Timeline.Span::source)
                        .collect(Collectors.toSet());
        Set<Integer> expected =
                java.util.stream.IntStream.range(0, shards.ranks())
                        .filter(r -> shards.rows(r) > 0)
                        .boxed()
                        .collect(Collectors.toSet());
        assertEquals(expected, multiplied);
        assertEquals(plan.steps().get(op.rank()).movers() + 1, timeline.tracks().size());
        for (Timeline.Span span : spans) {
            assertTrue(span.startNs() >= 0 && span.endNs() >= span.startNs(), span.toString());
        }
    }

    @Test
    void cublasMultipliesStepByStepToo() {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(3, DEADLINE)) {
            DeviceProblem problem = problem(arena, shards(3, false));
            world.run(
                    fabric -> {
                        gpu.bind();
                        try (CudaAllGatherMatmul op =
                                        problem.describe(CudaAllGatherMatmul.on(fabric, gpu))
                                                .engine("cublas")
                                                .pingPong()
                                                .prepare();
                                DeviceCheck check = new DeviceCheck(gpu);
                                GpuStream stream = GpuStream.create()) {
                            op.nextShard().upload(problem.shard(fabric.rank()), stream);
                            check.poison(op.product(0));
                            op.call(op.nextShard());
                            fabric.barrier();
                            DeviceMatrix a = DeviceProblem.upload(problem.a(), stream);
                            DeviceMatrix b = DeviceProblem.upload(problem.b(), stream);
                            assertTrue(check.product(a, b, false, op.product(0)).passed());
                            fabric.barrier();
                        }
                    });
        }
    }

    /** Two places of the own shard, two of what arrives, and the flags. */
    @Test
    void noGatheredAIsStoredAnywhere() {
        for (int ranks : new int[] {2, 8}) {
            try (Arena arena = Arena.ofShared();
                    World world = World.threads(ranks, DEADLINE)) {
                DeviceProblem problem =
                        DeviceProblem.random(
                                arena, Shards.even(128L * ranks, ranks), 512, 64, DType.BF16);
                long shardBytes = 128 * 512 * 2;
                world.run(
                        fabric -> {
                            gpu.bind();
                            try (CudaAllGatherMatmul op =
                                    problem.describe(CudaAllGatherMatmul.on(fabric, gpu))
                                            .pingPong()
                                            .prepare()) {
                                assertTrue(op.reachableBytes() >= 4 * shardBytes);
                                assertTrue(op.reachableBytes() <= 4 * shardBytes + 4096);
                            }
                        });
            }
        }
    }

    /** Two calls deep, on the caller's stream, with inputs that change. */
    @Test
    void manyCallsInARowSeeTheirOwnInputs() {
        int calls = 60;
        try (Arena arena = Arena.ofShared();
                World world = World.threads(4, DEADLINE)) {
            DeviceProblem[] problems = new DeviceProblem[3];
            Matrix[] goldens = new Matrix[3];
            for (int i = 0; i < 3; i++) {
                problems[i] = problem(arena, shards(4, true));
                DeviceProblem.fill(problems[i].a(), new java.util.Random(i));
                goldens[i] = golden(arena, problems[i], gpu);
            }
            world.run(
                    fabric -> {
                        gpu.bind();
                        try (CudaAllGatherMatmul op =
                                        problems[0]
                                                .describe(CudaAllGatherMatmul.on(fabric, gpu))
                                                .pingPong(2)
                                                .prepare();
                                GpuStream stream = GpuStream.create()) {
                            DeviceMatrix[] shards = new DeviceMatrix[3];
                            DeviceMatrix[] kept = new DeviceMatrix[3];
                            for (int i = 0; i < 3; i++) {
                                Matrix shard = problems[i].shard(fabric.rank());
                                shards[i] = DeviceProblem.upload(shard, stream);
                                kept[i] = DeviceProblem.like(op.product(0));
                            }
                            fabric.barrier();
                            for (int call = 0; call < calls; call++) {
                                int i = call % 3;
                                PendingCall<DeviceMatrix> pending =
                                        op.start(shards[i], stream, View.PIPELINED);
                                kept[i].copyFrom(op.product(0), stream);
                                if (call > 0) {
                                    pending.await();
                                }
                                if (call == calls - 1) {
                                    pending.await();
                                }
                            }
                            stream.synchronize();
                            for (int i = 0; i < 3; i++) {
                                Matrix c = Matrix.allocate(arena, DType.FP32, goldens[i].rows(), N);
                                kept[i].download(c, stream);
                                assertEquals(-1, goldens[i].firstDifferentRow(c), "input " + i);
                            }
                            fabric.barrier();
                        }
                    });
        }
    }

    static void await(String what, BooleanSupplier condition) {
        long start = System.nanoTime();
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() - start < 10_000_000_000L, () -> "never: " + what);
            Thread.onSpinWait();
        }
    }

    /**
     * Every product is held back, and the shards of two steps arrive all the same, those of a third
     * not: their buffer is not free. So the permutes of two steps end before the products of these
     * steps do.
     */
    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void permutesGoOnWhileTheProductOfTheirStepIsHeld(int lanes) {
        int ranks = 4;
        try (Arena arena = Arena.ofShared();
                Hold hold = new Hold(gpu);
                World world = World.threads(ranks, Duration.ofSeconds(15))) {
            DeviceProblem problem = problem(arena, shards(ranks, false));
            Matrix golden = golden(arena, problem, gpu);
            world.run(
                    fabric -> {
                        gpu.bind();
                        int rank = fabric.rank();
                        try (CudaAllGatherMatmul op =
                                        problem.describe(CudaAllGatherMatmul.on(fabric, gpu))
                                                .products(hold::before)
                                                .pingPong(lanes)
                                                .splitsPerRank(lanes)
                                                .prepare();
                                Flags flags = new Flags(op);
                                GpuStream stream = GpuStream.create()) {
                            op.nextShard().upload(problem.shard(rank), stream);
                            fabric.barrier();
                            PendingCall<DeviceMatrix> pending = op.start(op.nextShard());
                            try {
                                for (int chunk = 0; chunk < lanes; chunk++) {
                                    int number = chunk;
                                    for (int step = 1; step <= 2; step++) {
                                        int source = Math.floorMod(rank - step, ranks);
                                        await(
                                                "step " + step,
                                                () -> flags.haveCome(source, number, 1));
                                    }
                                    int third = Math.floorMod(rank - 3, ranks);
                                    assertFalse(flags.haveCome(third, chunk, 1));
                                }
                                assertFalse(pending.isDone());
                                fabric.barrier();
                            } finally {
                                hold.release();
                            }
                            pending.await();
                            assertBits(golden, op, stream);
                            for (int step = 0; step < 2; step++) {
                                int source = Math.floorMod(rank - step, ranks);
                                assertAllEndBefore(
                                        spans(op, Timeline.Kind.TRANSFER, source),
                                        spans(op, Timeline.Kind.COMPUTE, source));
                            }
                            fabric.barrier();
                        }
                    });
            assertFalse(hold.ranOut());
        }
    }

    private static List<Timeline.Span> spans(
            CudaAllGatherMatmul op, Timeline.Kind kind, int source) {
        List<Timeline.Span> spans =
                op.lastResult().timeline().tracks().stream()
                        .flatMap(track -> track.spans().stream())
                        .filter(span -> span.kind() == kind && span.source() == source)
                        .toList();
        assertFalse(spans.isEmpty(), kind + " of source " + source);
        return spans;
    }

    /** By the device's clock. */
    private static void assertAllEndBefore(List<Timeline.Span> these, List<Timeline.Span> those) {
        for (Timeline.Span one : these) {
            for (Timeline.Span other : those) {
                assertTrue(one.endNs() < other.endNs(), one + " before " + other);
            }
        }
    }

    /** Rank 0's permutes of one step are held back, and its product of that step ends meanwhile. */
    @ParameterizedTest
    @CsvSource({"1, 0", "1, 1", "2, 0", "2, 1"})
    void productsGoOnWhileThePermuteOfTheirStepIsHeld(int lanes, int step) {
        int ranks = 4;
        int source = Math.floorMod(-step, ranks);
        try (Arena arena = Arena.ofShared();
                Hold hold = new Hold(gpu);
                World world = World.threads(ranks, Duration.ofSeconds(15))) {
            DeviceProblem problem = problem(arena, shards(ranks, false));
            Matrix golden = golden(arena, problem, gpu);
            world.run(
                    fabric -> {
                        gpu.bind();
                        CopyStreams.Hook held =
                                fabric.rank() == 0
                                        ? hold.beforeCopiesOf(source)
                                        : CopyStreams.Hook.NONE;
                        try (CudaAllGatherMatmul op =
                                        problem.describe(CudaAllGatherMatmul.on(fabric, gpu))
                                                .copies(held)
                                                .pingPong(lanes)
                                                .splitsPerRank(lanes)
                                                .prepare();
                                GpuStream stream = GpuStream.create()) {
                            op.nextShard().upload(problem.shard(fabric.rank()), stream);
                            heldCall(fabric, op, golden, source, hold);
                            assertBits(golden, op, stream);
                            if (fabric.rank() == 0) {
                                assertAllEndBefore(
                                        spans(op, Timeline.Kind.COMPUTE, source),
                                        spans(op, Timeline.Kind.TRANSFER, source));
                            }
                            fabric.barrier();
                        }
                    });
            assertFalse(hold.ranOut());
        }
    }

    /** Rank 0 sees its rows of {@code source} multiplied, and only then lets go. */
    private void heldCall(
            Fabric fabric, CudaAllGatherMatmul op, Matrix golden, int source, Hold hold) {
        Shards shards = op.plan().chunks().shards();
        long first = shards.firstRow(source);
        long rows = shards.rows(source);
        long bytes = Matrix.contiguousBytes(DType.FP32, golden.rows(), N);
        try (PinnedBuffer host = PinnedBuffer.allocate(bytes);
                DeviceCheck check = new DeviceCheck(gpu);
                GpuStream looks = GpuStream.create()) {
            Matrix c = Matrix.of(host.segment(), DType.FP32, golden.rows(), N);
            Matrix expected = golden.rows(first, rows);
            check.poison(op.product(0));
            op.product(0).download(c, looks);
            assertFalse(c.rows(first, rows).bitwiseEquals(expected));
            fabric.barrier();
            PendingCall<DeviceMatrix> pending = op.start(op.nextShard());
            try {
                if (fabric.rank() == 0) {
                    await(
                            "the product of the rows of rank " + source,
                            () -> {
                                op.product(0).download(c, looks);
                                return c.rows(first, rows).bitwiseEquals(expected);
                            });
                }
                assertFalse(fabric.rank() <= 1 && pending.isDone());
                fabric.barrier();
            } finally {
                hold.release();
            }
            pending.await();
            fabric.barrier();
        }
    }

    /** Rank 1 fails in the middle of its call; the others say so, and the GPU serves on. */
    @Test
    void aRankThatFailsInTheMiddleOfTheRingIsNamed() {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(4, Duration.ofSeconds(2))) {
            DeviceProblem problem = problem(arena, shards(4, false));
            assertThrows(
                    RuntimeException.class,
                    () ->
                            world.run(
                                    fabric -> {
                                        gpu.bind();
                                        failingCall(problem, fabric);
                                    }));
            run(problem, golden(arena, problem, gpu), 1, "gated", 0);
        }
    }

    private void failingCall(DeviceProblem problem, Fabric fabric) {
        boolean fails = fabric.rank() == 1;
        CudaAllGatherMatmulBuilder builder =
                problem.describe(CudaAllGatherMatmul.on(fabric, gpu)).pingPong();
        if (fails) {
            int[] launches = new int[1];
            builder.products(product -> new FailingProduct(product, launches));
        }
        try (CudaAllGatherMatmul op = builder.prepare()) {
            fabric.barrier();
            RuntimeException end =
                    assertThrows(RuntimeException.class, () -> op.call(op.nextShard()));
            if (!fails) {
                assertTrue(end instanceof FabricException, end.toString());
                assertEquals(1, ((FabricException) end).peer(), end.getMessage());
            }
            throw end;
        }
    }
}
