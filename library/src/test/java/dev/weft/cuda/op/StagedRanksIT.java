package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.FabricException.PeerFailedException;
import dev.weft.fabric.World;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator.PendingCall;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Ranks on one GPU that do as if they lay on different hosts: rows go through host memory. */
@Tag("gpu")
class StagedRanksIT {

    private static final Duration DEADLINE = Duration.ofSeconds(5);
    private static final int CALLS = 4;

    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    /** What each rank does with its operator; before and after it all ranks meet. */
    private interface Body {
        void run(Transport fabric, CudaAllGatherMatmul op, DeviceCheck check, GpuStream stream);
    }

    private interface Request {
        CudaAllGatherMatmulBuilder on(CudaAllGatherMatmulBuilder builder);
    }

    private void onRanks(DeviceProblem problem, Request request, Body body) {
        try (World world = World.threads(problem.shards().ranks(), DEADLINE)) {
            world.run(
                    given -> {
                        Transport fabric = Transport.of(given);
                        gpu.bind();
                        CudaAllGatherMatmulBuilder builder =
                                problem.describe(CudaAllGatherMatmul.on(fabric, gpu)).staged();
                        // Before the operator: what loads and allocates waits for no grid.
                        try (DeviceCheck check = new DeviceCheck(gpu);
                                GpuStream stream = GpuStream.create();
                                CudaAllGatherMatmul op = request.on(builder).prepare()) {
                            fabric.barrier();
                            body.run(fabric, op, check, stream);
                            fabric.barrier();
                        }
                    });
        }
    }

    private static void callPoisoned(
            Transport fabric,
            DeviceProblem problem,
            CudaAllGatherMatmul op,
            DeviceCheck check,
            GpuStream stream) {
        op.nextShard().upload(problem.shard(fabric.rank()), stream);
        poison(check, op.product(0));
        op.call(op.nextShard());
    }

    private static void poison(DeviceCheck check, DeviceMatrix matrix) {
        if (matrix.rows() > 0) {
            check.poison(matrix);
        }
    }

    /** Gathered A bit by bit, the product by the device's judge. */
    private static void assertRight(
            DeviceProblem problem, CudaAllGatherMatmul op, DeviceCheck check, GpuStream stream) {
        DeviceMatrix a = DeviceProblem.upload(problem.a(), stream);
        DeviceMatrix b = DeviceProblem.upload(problem.b(), stream);
        assertEquals(0, check.equal(op.gathered().orElseThrow(), a).mismatches());
        DeviceCheck.Verdict verdict = check.product(a, b, problem.transposed(), op.product(0));
        assertTrue(verdict.passed(), verdict.toString());
        for (Timeline.Track track : op.lastResult().timeline().tracks()) {
            for (Timeline.Span span : track.spans()) {
                assertTrue(0 <= span.startNs() && span.startNs() <= span.endNs(), span.toString());
            }
        }
    }

    private void runCalls(DeviceProblem problem, Request request) {
        onRanks(
                problem,
                request,
                (fabric, op, check, stream) -> {
                    for (int i = 0; i < CALLS; i++) {
                        callPoisoned(fabric, problem, op, check, stream);
                    }
                    fabric.barrier();
                    assertRight(problem, op, check, stream);
                });
    }

    @ParameterizedTest
    @EnumSource(value = Algorithm.class, names = "DIRECT", mode = EnumSource.Mode.EXCLUDE)
    void rowsArriveExactly(Algorithm algorithm) {
        try (Arena arena = Arena.ofShared()) {
            for (DeviceProblem problem : DeviceProblem.ofSeveralShards(arena, 4)) {
                runCalls(problem, builder -> builder.algorithm(algorithm));
                runCalls(problem, builder -> builder.algorithm(algorithm).engine("cublas"));
                runCalls(
                        problem,
                        builder -> builder.algorithm(algorithm).chunkRows(100).commWorkers(2));
            }
        }
    }

    @Test
    void paddedRowsAndPartsOfRowsArriveExactly() {
        try (Arena arena = Arena.ofShared()) {
            DeviceProblem problem =
                    DeviceProblem.random(
                            arena, Shards.of(300, 77, 5), 77, 130, DType.FP16, DType.FP16, true);
            runCalls(problem, builder -> builder);
            runCalls(problem, builder -> builder.chunkRows(64).chunkCols(64));
        }
    }

    /** The bits depend on A, B and K alone, whichever way the rows came. */
    @Test
    void theProductHasTheBitsOfRanksThatReachEachOther() {
        try (Arena arena = Arena.ofShared();
                GpuStream uploads = GpuStream.create()) {
            DeviceProblem problem =
                    DeviceProblem.random(arena, Shards.even(768, 3), 512, 256, DType.BF16);
            DeviceMatrix expected;
            try (DeviceCheck check = new DeviceCheck(gpu);
                    CudaAllGatherMatmul alone =
                            problem.describe(CudaAllGatherMatmul.withHostPeers(gpu, 0)).prepare()) {
                alone.peerShard(1).copyFrom(problem.shard(1));
                alone.peerShard(2).copyFrom(problem.shard(2));
                alone.nextShard().upload(problem.shard(0), uploads);
                check.poison(alone.product(0));
                alone.call(alone.nextShard());
                expected = DeviceProblem.like(alone.product(0));
                expected.copyFrom(alone.product(0), uploads);
                uploads.synchronize();
            }
            onRanks(
                    problem,
                    builder -> builder,
                    (fabric, op, check, stream) -> {
                        callPoisoned(fabric, problem, op, check, stream);
                        fabric.barrier();
                        assertEquals(0, check.equal(op.product(0), expected).mismatches());
                    });
        }
    }

    /** Inputs change with every call; each product is kept before the next call overwrites it. */
    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"MESH_PUSH", "MESH_PULL", "RING", "SEQUENTIAL"})
    void queuedCallsSeeTheirOwnInputs(Algorithm algorithm) {
        int calls = 10;
        try (Arena arena = Arena.ofShared();
                GpuStream uploads = GpuStream.create()) {
            DeviceProblem problem =
                    DeviceProblem.random(arena, Shards.even(768, 3), 512, 256, DType.FP16);
            DeviceMatrix b = DeviceProblem.upload(problem.b(), uploads);
            DeviceMatrix[] inputs = new DeviceMatrix[calls];
            Random random = new Random(7);
            for (int i = 0; i < calls; i++) {
                DeviceProblem.fill(problem.a(), random);
                inputs[i] = DeviceProblem.upload(problem.a(), uploads);
            }
            onRanks(
                    problem,
                    builder -> builder.algorithm(algorithm).chunkRows(64),
                    (fabric, op, check, stream) -> {
                        DeviceMatrix[] kept = new DeviceMatrix[calls];
                        for (int i = 0; i < calls; i++) {
                            kept[i] = DeviceProblem.like(op.product(0));
                        }
                        fabric.barrier();
                        PendingCall<DeviceMatrix> pending = null;
                        for (int i = 0; i < calls; i++) {
                            DeviceMatrix shard = inputs[i].rows(256L * fabric.rank(), 256);
                            pending = op.start(shard, stream, View.PIPELINED);
                            kept[i].copyFrom(op.product(0), stream);
                            if (i > 0) {
                                pending.await();
                            }
                        }
                        pending.await();
                        stream.synchronize();
                        fabric.barrier();
                        for (int i = 0; i < calls; i++) {
                            assertTrue(
                                    check.product(inputs[i], b, false, kept[i]).passed(),
                                    "call " + i);
                        }
                    });
        }
    }

    @Test
    void theMeasuringViewsRunTheirPart() {
        try (Arena arena = Arena.ofShared()) {
            DeviceProblem problem =
                    DeviceProblem.random(arena, Shards.even(512, 2), 256, 256, DType.FP16);
            onRanks(
                    problem,
                    builder -> builder.algorithm(Algorithm.MESH_PULL),
                    (fabric, op, check, stream) -> {
                        callPoisoned(fabric, problem, op, check, stream);
                        callPoisoned(fabric, problem, op, check, stream);
                        for (View view :
                                new View[] {
                                    View.COMM_ONLY,
                                    View.COMPUTE_ONLY,
                                    View.COMPUTE_ONLY,
                                    View.PIPELINED,
                                    View.COMM_ONLY
                                }) {
                            fabric.barrier();
                            op.start(op.nextShard(), stream, view).await();
                        }
                        fabric.barrier();
                        poison(check, op.product(0));
                        op.start(op.nextShard(), stream, View.COMPUTE_ONLY).await();
                        fabric.barrier();
                        assertRight(problem, op, check, stream);
                    });
        }
    }

    /** In the midst of a call, while grids wait for its rows; the GPU serves on. */
    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"MESH_PUSH", "RING", "SEQUENTIAL"})
    void aRankThatCannotSendEndsTheCallOfAll(Algorithm algorithm) {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(3, DEADLINE)) {
            DeviceProblem problem =
                    DeviceProblem.random(arena, Shards.even(384, 3), 128, 128, DType.FP16);
            world.run(
                    given -> {
                        Transport fabric = Transport.of(given);
                        gpu.bind();
                        boolean breaks = fabric.rank() == 1;
                        Transport link = breaks ? BrokenChunkMover.in(fabric, 3) : fabric;
                        try (DeviceCheck check = new DeviceCheck(gpu);
                                GpuStream stream = GpuStream.create();
                                CudaAllGatherMatmul op =
                                        problem.describe(CudaAllGatherMatmul.on(link, gpu))
                                                .staged()
                                                .algorithm(algorithm)
                                                .prepare()) {
                            fabric.barrier();
                            callPoisoned(fabric, problem, op, check, stream);
                            callPoisoned(fabric, problem, op, check, stream);
                            assertBreaks(op, breaks);
                            assertThrows(IllegalStateException.class, op::nextShard);
                        }
                    });
        }
        paddedRowsAndPartsOfRowsArriveExactly();
    }

    private static void assertBreaks(CudaAllGatherMatmul op, boolean breaks) {
        RuntimeException end = assertThrows(RuntimeException.class, () -> op.call(op.nextShard()));
        if (breaks) {
            assertEquals(BrokenChunkMover.MESSAGE, end.getMessage());
        } else {
            assertTrue(end instanceof PeerFailedException, end.toString());
            assertEquals(1, ((PeerFailedException) end).peer());
        }
    }

    @Test
    void aRankThatStopsCallingIsNamed() {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(3, Duration.ofSeconds(1))) {
            DeviceProblem problem =
                    DeviceProblem.random(arena, Shards.even(384, 3), 128, 128, DType.FP16);
            world.run(
                    given -> {
                        Transport fabric = Transport.of(given);
                        gpu.bind();
                        try (DeviceCheck check = new DeviceCheck(gpu);
                                GpuStream stream = GpuStream.create();
                                CudaAllGatherMatmul op =
                                        problem.describe(CudaAllGatherMatmul.on(fabric, gpu))
                                                .staged()
                                                .algorithm(Algorithm.MESH_PUSH)
                                                .prepare()) {
                            fabric.barrier();
                            callPoisoned(fabric, problem, op, check, stream);
                            fabric.barrier();
                            if (fabric.rank() != 1) {
                                FabricException end =
                                        assertThrows(
                                                FabricException.class,
                                                () -> op.call(op.nextShard()));
                                assertEquals(1, end.peer(), end.getMessage());
                                assertEquals(2, end.report().orElseThrow().call());
                            }
                        }
                    });
        }
        paddedRowsAndPartsOfRowsArriveExactly();
    }
}
