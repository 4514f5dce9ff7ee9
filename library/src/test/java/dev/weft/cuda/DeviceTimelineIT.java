package dev.weft.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.fabric.World;
import dev.weft.op.Operator.View;
import dev.weft.op.Timeline;
import dev.weft.op.Timeline.Kind;
import dev.weft.op.Timeline.Span;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
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

    private static Gpu gpu(String kind) {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        Gpu gpu = Gpu.open(0);
        assumeTrue(
                gpu.hasHopperInstructions() || !kind.equals("hopper"),
                () -> "no Hopper instructions on " + gpu);
        return gpu;
    }

    /** Few columns: rows take far longer to come than to be multiplied, so tiles must wait. */
    @ParameterizedTest
    @CsvSource({"hopper", "mma"})
    void everyChunkAndEveryTileIsTold(String kind) {
        Gpu gpu = gpu(kind);
        System.setProperty(GatedKernel.KIND_PROPERTY, kind);
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
            System.clearProperty(GatedKernel.KIND_PROPERTY);
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

    private static void assertTells(
            Timeline timeline, Shards shards, long k, int rank, long before) {
        long now = System.nanoTime();
        assertTrue(timeline.startNs() > before - 1_000_000, "starts before the call");
        assertTrue(timeline.startNs() + timeline.elapsedNs() < now + 1_000_000, "ends later");
        long copied = 0;
        for (Span span : spans(timeline, Kind.TRANSFER)) {
            assertEquals(rank, span.to());
            assertTrue(span.chunk() >= 0);
            copied += span.bytes();
        }
        assertEquals(2 * k * (shards.totalRows() - shards.rows(rank)), copied);
        // Tiles that wait within are told of in parts.
        assertTrue(rows(timeline, Kind.COMPUTE) >= shards.totalRows());
        for (Timeline.Track track : timeline.tracks()) {
            long at = 0;
            for (Span span : track.spans()) {
                assertTrue(span.startNs() >= at, () -> track.name() + ": " + span);
                assertTrue(span.endNs() >= span.startNs(), () -> track.name() + ": " + span);
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
