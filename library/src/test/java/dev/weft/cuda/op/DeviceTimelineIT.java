package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.Gpu;
import dev.weft.cuda.kernel.KernelFamily;
import dev.weft.fabric.World;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import dev.weft.trace.Timeline.Span;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A GPU tells of every chunk and every tile of a call, on the host's clock. */
@Tag("gpu")
class DeviceTimelineIT {

    private static final int K = 4096;
    private static final int SMALL_K = 512;

    /** One column of tiles. */
    private static final int N = 96;

    /** Several columns of tiles. */
    private static final int WIDE_N = 1000;

    private static Gpu gpu(String kind) {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        Gpu gpu = Gpu.open(0);
        assumeTrue(
                gpu.capability() / 10 == 9 || !kind.equals("hopper"),
                () -> "no Hopper instructions on " + gpu);
        return gpu;
    }

    /** Few columns: rows take far longer to come than to be multiplied, so tiles must wait. */
    @ParameterizedTest
    @CsvSource({"hopper", "mma"})
    void everyChunkAndEveryTileIsTold(String kind) {
        Gpu gpu = gpu(kind);
        System.setProperty(KernelFamily.PROPERTY, kind);
        Shards shards = Shards.of(1500, 0, 3001, 700);
        try (Arena arena = Arena.ofShared()) {
            DeviceProblem problem = DeviceProblem.random(arena, shards, K, N, DType.BF16);
            try (CudaAllGatherMatmul op =
                    problem.describe(CudaAllGatherMatmul.withHostPeers(gpu, 0)).prepare()) {
                for (int call = 0; call < 3; call++) {
                    long before = System.nanoTime();
                    op.callInPlace(View.PIPELINED);
                    Timeline timeline = op.lastResult().timeline();
                    assertTells(timeline, shards, K, 0, before);
                    assertTrue(spans(timeline, Kind.WAIT).stream().allMatch(s -> s.source() > 1));
                    assertTrue(!spans(timeline, Kind.WAIT).isEmpty(), "no tile waited");
                }
                op.callInPlace(View.COMPUTE_ONLY);
                Timeline product = op.lastResult().timeline();
                assertEquals(List.of(), spans(product, Kind.TRANSFER));
                assertEquals(List.of(), spans(product, Kind.WAIT));
                assertEquals(shards.totalRows(), rows(product, Kind.COMPUTE));
            }
        } finally {
            System.clearProperty(KernelFamily.PROPERTY);
        }
    }

    /** Between ranks on a GPU, whoever copies: the one to whom the rows come tells of them. */
    @ParameterizedTest
    @CsvSource({"mesh-pull", "mesh-push", "ring", "sequential"})
    void ranksTellWhatComesToThem(String algorithm) {
        Gpu gpu = gpu("mma");
        Shards shards = Shards.of(400, 130, 260);
        try (Arena arena = Arena.ofShared()) {
            DeviceProblem problem = DeviceProblem.random(arena, shards, SMALL_K, N, DType.FP16);
            try (World world = World.threads(3)) {
                world.run(
                        fabric -> {
                            gpu.bind();
                            try (CudaAllGatherMatmul op =
                                    problem.describe(CudaAllGatherMatmul.on(fabric, gpu))
                                            .algorithm(Algorithm.of(algorithm))
                                            .prepare()) {
                                long before = System.nanoTime();
                                op.callInPlace(View.PIPELINED);
                                Timeline told = op.lastResult().timeline();
                                assertTells(told, shards, SMALL_K, fabric.rank(), before);
                                fabric.barrier();
                            }
                        });
            }
        }
    }

    /** Of a library's products only the begin and the end of the call are known. */
    @ParameterizedTest
    @CsvSource({"mesh-pull", "sequential"})
    void onlyBeginAndEndOfCublasAreTold(String algorithm) {
        Gpu gpu = gpu("mma");
        Shards shards = Shards.of(400, 0, 260, 128);
        try (Arena arena = Arena.ofShared()) {
            DeviceProblem problem = DeviceProblem.random(arena, shards, SMALL_K, N, DType.FP16);
            try (CudaAllGatherMatmul op =
                    problem.describe(CudaAllGatherMatmul.withHostPeers(gpu, 0))
                            .algorithm(Algorithm.of(algorithm))
                            .engine("cublas")
                            .prepare()) {
                long before = System.nanoTime();
                op.callInPlace(View.PIPELINED);
                Timeline told = op.lastResult().timeline();
                assertInOrder(told, before);
                assertEquals(1, spans(told, Kind.TRANSFER).size());
                assertEquals(shards.totalRows(), rows(told, Kind.COMPUTE));
            }
        }
    }

    /** Nobody writes what the peers would send: only when it moves is told. */
    @ParameterizedTest
    @CsvSource({
        "hopper, chain, false",
        "mma, chain, true",
        "hopper, mesh-push, true",
        "mma, mesh-push, false",
        "hopper, sequential, true"
    })
    void everyCopyAndEveryTileOfSumsIsTold(String kind, String algorithm, boolean all) {
        Gpu gpu = gpu(kind);
        System.setProperty(KernelFamily.PROPERTY, kind);
        Shards rows = Shards.of(700, 1, 900);
        int rank = 1;
        try (Arena arena = Arena.ofShared();
                CudaMatmulReduce op =
                        CudaMatmulReduce.withHostPeers(gpu, rank, all)
                                .a(rows, Shards.of(256, SMALL_K, 256), DType.BF16)
                                .b(Matrix.allocate(arena, DType.BF16, SMALL_K, WIDE_N), false)
                                .algorithm(Reduction.of(algorithm))
                                .prepare()) {
            for (int call = 0; call < 3; call++) {
                long before = System.nanoTime();
                op.callInPlace(View.PIPELINED);
                Timeline told = op.lastResult().timeline();
                assertInOrder(told, before);
                assertEquals(bytes(op.plan().steps(), rank, true), bytes(told, rank, true));
                assertEquals(bytes(op.plan().steps(), rank, false), bytes(told, rank, false));
                assertTrue(rows(told, Kind.COMPUTE) >= rows.totalRows());
                assertRowsOfShards(told, rows);
                if (algorithm.equals("chain")) {
                    assertTrue(!spans(told, Kind.WAIT).isEmpty(), "nothing waited");
                }
            }
            op.callInPlace(View.COMM_ONLY);
            Timeline moved = op.lastResult().timeline();
            assertEquals(List.of(), spans(moved, Kind.COMPUTE));
            assertEquals(bytes(op.plan().steps(), rank, false), bytes(moved, rank, false));
            op.callInPlace(View.COMPUTE_ONLY);
            Timeline product = op.lastResult().timeline();
            assertEquals(List.of(), spans(product, Kind.TRANSFER));
        } finally {
            System.clearProperty(KernelFamily.PROPERTY);
        }
    }

    @ParameterizedTest
    @CsvSource({"direct, false", "direct, true", "sequential, false", "sequential, true"})
    void sumsBetweenRanksOnGpusAreTold(String algorithm, boolean all) {
        Gpu gpu = gpu("mma");
        Shards rows = Shards.of(400, 130, 260);
        try (World world = World.threads(3);
                Arena arena = Arena.ofShared()) {
            Matrix b = Matrix.allocate(arena, DType.FP16, 256, WIDE_N);
            world.run(
                    fabric -> {
                        gpu.bind();
                        try (CudaMatmulReduce op =
                                CudaMatmulReduce.on(fabric, gpu, all)
                                        .a(rows, Shards.even(768, 3), DType.FP16)
                                        .b(b, false)
                                        .algorithm(Reduction.of(algorithm))
                                        .prepare()) {
                            long before = System.nanoTime();
                            op.callInPlace(View.PIPELINED);
                            Timeline told = op.lastResult().timeline();
                            assertInOrder(told, before);
                            assertRowsOfShards(told, rows);
                            long own = rows.rows(fabric.rank());
                            boolean inPlace = algorithm.equals("direct");
                            long multiplied = inPlace ? own : rows.totalRows();
                            assertTrue(rows(told, Kind.COMPUTE) >= multiplied);
                            long pushed = inPlace && all ? 2 * own * WIDE_N * Float.BYTES : 0;
                            assertEquals(pushed, bytes(told, fabric.rank(), false));
                            fabric.barrier();
                        }
                    });
        }
    }

    /** What goes to the rank, or leaves it. */
    private static long bytes(List<StepPlan> plans, int rank, boolean come) {
        return plans.stream()
                .flatMap(plan -> plan.workers().stream())
                .flatMap(worker -> worker.steps().stream())
                .filter(Step.Copy.class::isInstance)
                .map(Step.Copy.class::cast)
                .filter(copy -> (come ? copy.to() : copy.from()).rank() == rank)
                .mapToLong(copy -> copy.from().rows() * WIDE_N * Float.BYTES)
                .sum();
    }

    private static long bytes(Timeline timeline, int rank, boolean come) {
        return spans(timeline, Kind.TRANSFER).stream()
                .filter(span -> (span.to() == rank) == come)
                .mapToLong(Span::bytes)
                .sum();
    }

    private static void assertRowsOfShards(Timeline timeline, Shards shards) {
        for (Timeline.Track track : timeline.tracks()) {
            for (Span span : track.spans()) {
                long end = span.firstRow() + span.rows();
                assertTrue(end <= shards.rows(span.source()), () -> track.name() + ": " + span);
            }
        }
    }

    private static void assertTells(
            Timeline timeline, Shards shards, long k, int rank, long before) {
        assertInOrder(timeline, before);
        long copied = 0;
        for (Span span : spans(timeline, Kind.TRANSFER)) {
            assertEquals(rank, span.to());
            assertTrue(span.chunk() >= 0);
            copied += span.bytes();
        }
        assertEquals(2 * k * (shards.totalRows() - shards.rows(rank)), copied);
        // Tiles that wait within are told of in parts.
        assertTrue(rows(timeline, Kind.COMPUTE) >= shards.totalRows());
        assertRowsOfShards(timeline, shards);
    }

    private static void assertInOrder(Timeline timeline, long before) {
        long now = System.nanoTime();
        assertTrue(timeline.startNs() > before - 1_000_000, "starts before the call");
        assertTrue(timeline.startNs() + timeline.elapsedNs() < now + 1_000_000, "ends later");
        for (Timeline.Track track : timeline.tracks()) {
            long from = 0;
            long at = 0;
            for (Span span : track.spans()) {
                boolean together = span.startNs() == from && span.endNs() == at;
                assertTrue(together || span.startNs() >= at, () -> track.name() + ": " + span);
                assertTrue(span.endNs() >= span.startNs(), () -> track.name() + ": " + span);
                from = span.startNs();
                at = span.endNs();
            }
            assertTrue(at <= timeline.elapsedNs(), track.name());
        }
    }

    private static List<Span> spans(Timeline timeline, Kind kind) {
        return timeline.tracks().stream()
                .flatMap(track -> track.spans().stream())
                .filter(span -> span.kind() == kind)
                .toList();
    }

    private static long rows(Timeline timeline, Kind kind) {
        return spans(timeline, kind).stream().mapToLong(Span::rows).sum();
    }
}
