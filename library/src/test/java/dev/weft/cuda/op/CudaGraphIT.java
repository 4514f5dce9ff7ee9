package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.fabric.World;
import dev.weft.ffi.CudaGraphs;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Calls that are captured into CUDA graphs, whose every launch is a new call. */
@Tag("gpu")
class CudaGraphIT {

    private static final Duration DEADLINE = Duration.ofSeconds(5);
    private static final int REPLAYS = 10_000;
    private static final int INPUTS = 5;

    /** Between so many launches there is an ordinary call. */
    private static final int BETWEEN = 1000;

    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    private static Matrix random(Arena arena, DType type, long rows, long cols, int seed) {
        Matrix matrix = Matrix.allocate(arena, type, rows, cols);
        DeviceProblem.fill(matrix, new Random(seed));
        return matrix;
    }

    /** A gather and its product, and behind it a product that is summed over ranks, for all. */
    private final class Layer implements AutoCloseable {

        private final Arena arena = Arena.ofShared();
        private final GpuStream stream = GpuStream.create();
        private final Shards shards;
        private final List<Matrix> peers = new ArrayList<>();
        private final List<DeviceMatrix> inputs = new ArrayList<>();
        private final List<Matrix> sums = new ArrayList<>();
        private final CudaAllGatherMatmul gather;
        private final CudaMatmulReduce reduce;
        private final DeviceMatrix shard;

        Layer(Algorithm algorithm) {
            this(algorithm, Shards.of(40, 24));
        }

        Layer(Algorithm algorithm, Shards shards) {
            this.shards = shards;
            long rows = shards.totalRows();
            gather =
                    CudaAllGatherMatmul.withHostPeers(gpu, 0)
                            .a(shards, DType.FP16)
                            .b(random(arena, DType.FP16, 72, 64, 1), false)
                            .output(DType.FP16)
                            .algorithm(algorithm)
                            .deadline(DEADLINE)
                            .prepare();
            reduce =
                    CudaMatmulReduce.withHostPeers(gpu, 1, true)
                            .a(shards, Shards.of(16, 64), DType.FP16)
                            .b(random(arena, DType.FP16, 64, 136, 2), false)
                            .output(DType.FP32)
                            .algorithm(Reduction.CHAIN)
                            .deadline(DEADLINE)
                            .prepare();
            for (int i = 0; i < INPUTS; i++) {
                Matrix own = random(arena, DType.FP16, shards.rows(0), 72, 10 + i);
                inputs.add(DeviceProblem.upload(own, stream));
                peers.add(random(arena, DType.FP16, shards.rows(1), 72, 20 + i));
                sums.add(random(arena, DType.FP32, rows, 136, 30 + i));
            }
            shard = DeviceProblem.like(inputs.getFirst());
        }

        void place(int input) {
            gather.peerShard(1).copyFrom(peers.get(input));
            reduce.incoming(0, Reduction.PARTIAL).orElseThrow().copyFrom(sums.get(input));
            shard.copyFrom(inputs.get(input), stream);
        }

        void queue() {
            gather.start(shard, stream, View.PIPELINED);
            reduce.start(gather.product(0), stream, View.PIPELINED);
        }

        void call() {
            gather.start(shard, stream, View.PIPELINED).await();
            reduce.start(gather.product(0), stream, View.PIPELINED).await();
        }

        @Override
        public void close() {
            reduce.close();
            gather.close();
            stream.close();
            arena.close();
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"MESH_PULL", "SEQUENTIAL"})
    void everyLaunchIsANewCall(Algorithm algorithm) {
        boolean few = algorithm == Algorithm.MESH_PULL;
        int replays = few ? REPLAYS : REPLAYS / 10;
        // Sums of few rows are copied before and after the product, those of more beside it.
        try (Layer layer = new Layer(algorithm, few ? Shards.of(40, 24) : Shards.of(190, 80));
                DeviceCheck check = new DeviceCheck(gpu)) {
            List<DeviceMatrix> products = new ArrayList<>();
            List<DeviceMatrix> results = new ArrayList<>();
            for (int i = 0; i < INPUTS; i++) {
                layer.place(i);
                layer.call();
                products.add(DeviceProblem.like(layer.gather.product(0)));
                products.getLast().copyFrom(layer.gather.product(0), layer.stream);
                results.add(DeviceProblem.like(layer.reduce.product(0)));
                results.getLast().copyFrom(layer.reduce.product(0), layer.stream);
            }
            layer.stream.synchronize();
            assertTrue(check.equal(results.get(0), results.get(1)).mismatches() > 0);
            try (GpuStream.Graph graph = layer.stream.capture(layer::queue)) {
                for (int i = 0; i < replays; i++) {
                    int input = i % INPUTS;
                    layer.place(input);
                    check.poison(layer.gather.product(0));
                    check.poison(layer.reduce.product(0));
                    if (i % BETWEEN == BETWEEN - 1) {
                        layer.call();
                    } else {
                        graph.launch(layer.stream);
                    }
                    layer.stream.synchronize();
                    String what = "launch " + i;
                    DeviceMatrix product = layer.gather.product(0);
                    DeviceMatrix result = layer.reduce.product(0);
                    assertEquals(0, check.equal(products.get(input), product).mismatches(), what);
                    assertEquals(0, check.equal(results.get(input), result).mismatches(), what);
                }
                layer.gather.checkReplays();
                layer.reduce.checkReplays();
            }
        }
    }

    /** One call behind the other in one graph, of one operator. */
    @Test
    void twoCallsOfOneOperator() {
        try (Layer layer = new Layer(Algorithm.MESH_PULL);
                DeviceCheck check = new DeviceCheck(gpu)) {
            layer.place(0);
            layer.call();
            DeviceMatrix expected = DeviceProblem.like(layer.gather.product(0));
            expected.copyFrom(layer.gather.product(0), layer.stream);
            DeviceMatrix first = DeviceProblem.like(expected);
            try (GpuStream.Graph graph =
                    layer.stream.capture(
                            () -> {
                                layer.gather.start(layer.shard, layer.stream, View.PIPELINED);
                                first.copyFrom(layer.gather.product(0), layer.stream);
                                layer.gather.start(layer.shard, layer.stream, View.PIPELINED);
                            })) {
                for (int i = 0; i < 100; i++) {
                    check.poison(first);
                    check.poison(layer.gather.product(0));
                    graph.launch(layer.stream);
                    layer.stream.synchronize();
                    assertEquals(0, check.equal(expected, first).mismatches());
                    DeviceMatrix second = layer.gather.product(0);
                    assertEquals(0, check.equal(expected, second).mismatches());
                }
                layer.gather.checkReplays();
            }
        }
    }

    /** The list of tiles of other rows must be on the GPU, whether the graph is launched or not. */
    @Test
    void aCaptureOfOtherRowsLeavesCallsRight() {
        Shards some = Shards.of(150, 90);
        try (Layer layer = new Layer(Algorithm.MESH_PULL, Shards.of(300, 200));
                DeviceCheck check = new DeviceCheck(gpu)) {
            CudaAllGatherMatmul op = layer.gather;
            DeviceMatrix rows = layer.inputs.getFirst().rows(0, 150);
            op.peerShard(1, some).copyFrom(layer.peers.getFirst().rows(0, 90));
            DeviceMatrix expected = DeviceProblem.like(op.call(rows, some).product(0));
            expected.copyFrom(op.product(0), layer.stream);
            layer.place(1);
            layer.call();
            op.peerShard(1, some).copyFrom(layer.peers.getFirst().rows(0, 90));
            try (GpuStream.Graph graph =
                    layer.stream.capture(
                            () -> op.start(rows, some, layer.stream, View.PIPELINED))) {
                check.poison(op.product(0));
                assertEquals(0, check.equal(expected, op.call(rows, some).product(0)).mismatches());
                check.poison(op.product(0));
                graph.launch(layer.stream);
                layer.stream.synchronize();
                assertEquals(0, check.equal(expected, op.product(0)).mismatches());
            }
        }
    }

    /** One stream orders launches and calls, without the host. */
    @Test
    void callsComeBehindLaunchesWithoutAWait() {
        try (Layer layer = new Layer(Algorithm.MESH_PULL, Shards.of(300, 200));
                DeviceCheck check = new DeviceCheck(gpu)) {
            List<DeviceMatrix> expected = new ArrayList<>();
            layer.place(0);
            for (int input = 0; input < 2; input++) {
                layer.shard.copyFrom(layer.inputs.get(input), layer.stream);
                layer.gather.start(layer.shard, layer.stream, View.PIPELINED).await();
                expected.add(DeviceProblem.like(layer.gather.product(0)));
                expected.getLast().copyFrom(layer.gather.product(0), layer.stream);
            }
            DeviceMatrix launched = DeviceProblem.like(expected.getFirst());
            DeviceMatrix called = DeviceProblem.like(expected.getFirst());
            try (GpuStream.Graph graph =
                    layer.stream.capture(
                            () -> layer.gather.start(layer.shard, layer.stream, View.PIPELINED))) {
                for (int i = 0; i < 200; i++) {
                    layer.shard.copyFrom(layer.inputs.get(0), layer.stream);
                    graph.launch(layer.stream);
                    launched.copyFrom(layer.gather.product(0), layer.stream);
                    layer.shard.copyFrom(layer.inputs.get(1), layer.stream);
                    var call = layer.gather.start(layer.shard, layer.stream, View.PIPELINED);
                    called.copyFrom(layer.gather.product(0), layer.stream);
                    call.await();
                    graph.launch(layer.stream);
                    layer.stream.synchronize();
                    assertEquals(0, check.equal(expected.get(0), launched).mismatches(), "" + i);
                    assertEquals(0, check.equal(expected.get(1), called).mismatches(), "" + i);
                }
                layer.gather.checkReplays();
            }
        }
    }

    /** As other libraries may capture; PyTorch's default is the strictest. */
    @ParameterizedTest
    @EnumSource(CudaGraphs.Mode.class)
    void otherLibrariesMayCaptureInAnyMode(CudaGraphs.Mode mode) {
        try (Layer layer = new Layer(Algorithm.MESH_PULL, Shards.of(190, 80));
                DeviceCheck check = new DeviceCheck(gpu)) {
            layer.place(0);
            layer.call();
            DeviceMatrix expected = DeviceProblem.like(layer.reduce.product(0));
            expected.copyFrom(layer.reduce.product(0), layer.stream);
            layer.stream.synchronize();
            long stream = layer.stream.handle();
            CudaGraphs.beginCapture(stream, mode);
            layer.queue();
            long graph = CudaGraphs.endCapture(stream);
            check.poison(layer.reduce.product(0));
            CudaGraphs.launch(graph, stream);
            layer.stream.synchronize();
            CudaGraphs.destroy(graph);
            DeviceMatrix result = layer.reduce.product(0);
            assertEquals(0, check.equal(expected, result).mismatches());
            layer.call();
        }
    }

    /** What a call gave stays until the next one, and a capture is none. */
    @Test
    void aCaptureLeavesTheGatheredRowsOfTheCallBefore() {
        try (Layer layer = new Layer(Algorithm.MESH_PULL)) {
            layer.place(0);
            layer.call();
            DeviceMatrix before = layer.gather.lastResult().gathered().orElseThrow();
            layer.stream
                    .capture(() -> layer.gather.start(layer.shard, layer.stream, View.PIPELINED))
                    .close();
            assertEquals(before, layer.gather.lastResult().gathered().orElseThrow());
            assertNotEquals(before, layer.gather.gathered().orElseThrow());
            layer.call();
            assertEquals(layer.gather.gathered(), layer.gather.lastResult().gathered());
        }
    }

    @Test
    void aCapturedCallIsNotAwaitedAndItsRowsStay() {
        try (Layer layer = new Layer(Algorithm.MESH_PULL)) {
            layer.place(0);
            GpuStream.Graph graph =
                    layer.stream.capture(
                            () -> {
                                var call =
                                        layer.gather.start(
                                                layer.shard, layer.stream, View.PIPELINED);
                                assertThrows(IllegalStateException.class, call::await);
                            });
            graph.close();
            assertThrows(IllegalStateException.class, () -> graph.launch(layer.stream));
            Shards other = Shards.of(40, 3);
            String message =
                    assertThrows(
                                    IllegalArgumentException.class,
                                    () -> layer.gather.call(layer.shard, other))
                            .getMessage();
            assertTrue(message.contains("40,3") && message.contains("40,24"), message);
            layer.call();
        }
    }

    @Test
    void whatOtherRanksTakePartInIsRefused() {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(1, DEADLINE)) {
            DeviceProblem p = DeviceProblem.random(arena, Shards.even(64, 1), 64, 64, DType.BF16);
            world.run(
                    fabric -> {
                        gpu.bind();
                        try (GpuStream stream = GpuStream.create();
                                CudaAllGatherMatmul op =
                                        p.describe(CudaAllGatherMatmul.on(fabric, gpu))
                                                .algorithm(Algorithm.MESH_PULL)
                                                .prepare()) {
                            DeviceMatrix shard = DeviceProblem.upload(p.shard(0), stream);
                            String message =
                                    assertThrows(
                                                    UnsupportedOperationException.class,
                                                    () ->
                                                            stream.capture(
                                                                    () ->
                                                                            op.start(
                                                                                    shard,
                                                                                    stream,
                                                                                    View
                                                                                            .PIPELINED)))
                                            .getMessage();
                            assertTrue(message.contains("expected"), message);
                            op.call(shard);
                        }
                    });
        }
    }
}
