package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.GatedProduct;
import dev.weft.cuda.kernel.KernelFamily;
import dev.weft.cuda.kernel.RowRange;
import dev.weft.cuda.kernel.StallWord;
import dev.weft.cuda.kernel.TileSchedule;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.World;
import dev.weft.gemm.Float64Oracle;
import dev.weft.op.Operator.Candidate;
import dev.weft.op.Operator.PendingCall;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** The operator on a real GPU: every algorithm, both peers, both engines, both kernels. */
@Tag("gpu")
class CudaAllGatherMatmulIT {

    private static final Duration DEADLINE = Duration.ofSeconds(3);

    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    /** Both operators' products must have the same bits, and the judge must accept them. */
    private void assertRight(DeviceProblem problem, CudaAllGatherMatmul op) {
        try (DeviceCheck check = new DeviceCheck(gpu);
                GpuStream stream = GpuStream.create();
                Arena arena = Arena.ofConfined()) {
            DeviceMatrix a = DeviceProblem.upload(problem.a(), stream);
            DeviceMatrix b = DeviceProblem.upload(problem.b(), stream);
            DeviceMatrix c = op.product(0);
            DeviceCheck.Verdict verdict = check.product(a, b, problem.transposed(), c);
            assertTrue(verdict.passed(), verdict.toString());
            op.gathered().ifPresent(g -> assertEquals(0, check.equal(g, a).mismatches()));
            Matrix host = Matrix.allocate(arena, c.dtype(), c.rows(), c.cols());
            c.download(host, stream);
            if (c.rows() > 0) {
                long[] rows = {0, c.rows() / 2, c.rows() - 1};
                assertTrue(
                        new Float64Oracle(problem.a(), problem.b(), problem.transposed())
                                .check(host, java.util.Arrays.stream(rows).distinct().toArray())
                                .withinBound());
            }
        }
    }

    private void callPoisoned(CudaAllGatherMatmul op, Matrix shard) {
        try (DeviceCheck check = new DeviceCheck(gpu);
                GpuStream stream = GpuStream.create()) {
            op.nextShard().upload(shard, stream);
            check.poison(op.product(0));
            op.call(op.nextShard());
        }
    }

    private void runHostPeers(DeviceProblem problem, CudaAllGatherMatmulBuilder builder, int rank) {
        try (CudaAllGatherMatmul op = problem.describe(builder).deadline(DEADLINE).prepare()) {
            for (int r = 0; r < problem.shards().ranks(); r++) {
                if (r != rank && problem.shards().rows(r) > 0) {
                    op.peerShard(r).copyFrom(problem.shard(r));
                }
            }
            for (int i = 0; i < 3; i++) {
                callPoisoned(op, problem.shard(rank));
                assertRight(problem, op);
            }
        }
    }

    @ParameterizedTest
    @CsvSource({
        "FP16, FP16, false, 512, 256, 384",
        "FP16, FP32, true, 512, 256, 384",
        "BF16, BF16, true, 1024, 512, 256",
        "BF16, FP32, false, 1024, 520, 264",
        "FP16, FP16, false, 700, 1000, 130",
        "BF16, FP32, true, 300, 77, 33",
        "FP16, FP32, false, 5, 1, 1",
        // Few rows, which come in one copy.
        "BF16, BF16, false, 100, 520, 264",
        // Two tiles of three quarters' width in a row for some workers.
        "FP16, FP16, false, 4096, 64, 8064",
    })
    void hostPeersGiveTheProduct(DType in, DType out, boolean transposed, long m, long k, long n) {
        try (Arena arena = Arena.ofShared()) {
            for (int ranks : new int[] {1, 2, 4}) {
                DeviceProblem problem =
                        DeviceProblem.random(
                                arena, Shards.even(m, ranks), k, n, in, out, transposed);
                runHostPeers(problem, CudaAllGatherMatmul.withHostPeers(gpu, 0), 0);
                runHostPeers(problem, CudaAllGatherMatmul.withHostPeers(gpu, ranks - 1), ranks - 1);
                runHostPeers(
                        problem, CudaAllGatherMatmul.withHostPeers(gpu, 0).engine("cublas"), 0);
                runHostPeers(
                        problem,
                        CudaAllGatherMatmul.withHostPeers(gpu, 0).chunkRows(60).commWorkers(2),
                        0);
                runHostPeers(
                        problem,
                        CudaAllGatherMatmul.withHostPeers(gpu, 0).algorithm(Algorithm.SEQUENTIAL),
                        0);
            }
        }
    }

    @Test
    void theKernelForOlderCardsGivesTheProductToo() {
        String before = System.getProperty(KernelFamily.PROPERTY);
        System.setProperty(KernelFamily.PROPERTY, "mma");
        try {
            hostPeersGiveTheProduct(DType.BF16, DType.BF16, false, 700, 1000, 130);
            hostPeersGiveTheProduct(DType.FP16, DType.FP32, true, 1024, 520, 264);
        } finally {
            if (before == null) {
                System.clearProperty(KernelFamily.PROPERTY);
            } else {
                System.setProperty(KernelFamily.PROPERTY, before);
            }
        }
    }

    @ParameterizedTest
    @EnumSource(Algorithm.class)
    void ranksThatShareTheGpuGiveTheSameBits(Algorithm algorithm) {
        try (Arena arena = Arena.ofShared()) {
            for (DeviceProblem problem : DeviceProblem.ofSeveralShards(arena, 8)) {
                runRanks(problem, algorithm, CudaEngine.GATED, 0);
                runRanks(problem, algorithm, CudaEngine.CUBLAS, 0);
                runRanks(problem, algorithm, CudaEngine.GATED, 100);
            }
        }
    }

    private void runRanks(
            DeviceProblem problem, Algorithm algorithm, CudaEngine engine, long chunkRows) {
        try (World world = World.threads(problem.shards().ranks(), DEADLINE)) {
            world.call(
                    fabric -> {
                        gpu.bind();
                        CudaAllGatherMatmulBuilder builder =
                                problem.describe(CudaAllGatherMatmul.on(fabric, gpu))
                                        .algorithm(algorithm)
                                        .engine(engine.label());
                        if (chunkRows > 0) {
                            builder.chunkRows(chunkRows);
                        }
                        try (CudaAllGatherMatmul op = builder.prepare()) {
                            for (int i = 0; i < 3; i++) {
                                callPoisoned(op, problem.shard(fabric.rank()));
                            }
                            fabric.barrier();
                            assertRight(problem, op);
                            fabric.barrier();
                        }
                        return null;
                    });
        }
    }

    /** Rows wait for their lane's counter first, in chunks of rows and columns. */
    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"MESH_PUSH", "MESH_PULL", "RING", "BIDIRECTIONAL_RING"})
    void rowsThatWaitForCountersGiveTheProduct(Algorithm algorithm) {
        try (Arena arena = Arena.ofShared()) {
            for (DeviceProblem problem : DeviceProblem.ofSeveralShards(arena, 4)) {
                try (World world = World.threads(problem.shards().ranks(), DEADLINE)) {
                    world.run(
                            fabric -> {
                                gpu.bind();
                                try (CudaAllGatherMatmul op =
                                        problem.describe(CudaAllGatherMatmul.on(fabric, gpu))
                                                .algorithm(algorithm)
                                                .chunkRows(60)
                                                .chunkCols(128)
                                                .commWorkers(2)
                                                .waitForSummary()
                                                .prepare()) {
                                    for (int i = 0; i < 4; i++) {
                                        callPoisoned(op, problem.shard(fabric.rank()));
                                        if (i == 1) {
                                            op.callInPlace(View.COMPUTE_ONLY);
                                            op.callInPlace(View.COMM_ONLY);
                                        }
                                    }
                                    fabric.barrier();
                                    assertRight(problem, op);
                                    fabric.barrier();
                                }
                            });
                }
            }
        }
    }

    /** The others' calls end with its name, memory is freed in order, and the GPU serves on. */
    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"DIRECT", "MESH_PULL", "RING"})
    void aRankThatStopsCallingIsNamed(Algorithm algorithm) {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(3, Duration.ofSeconds(1))) {
            DeviceProblem problem =
                    DeviceProblem.random(arena, Shards.even(384, 3), 128, 128, DType.FP16);
            world.run(
                    fabric -> {
                        gpu.bind();
                        try (CudaAllGatherMatmul op =
                                problem.describe(CudaAllGatherMatmul.on(fabric, gpu))
                                        .algorithm(algorithm)
                                        .prepare()) {
                            callPoisoned(op, problem.shard(fabric.rank()));
                            fabric.barrier();
                            if (fabric.rank() != 1) {
                                FabricException end =
                                        assertThrows(
                                                FabricException.class,
                                                () -> op.call(op.nextShard()));
                                assertEquals(1, end.peer(), end.getMessage());
                                assertReport(end, fabric.rank(), algorithm == Algorithm.DIRECT);
                            }
                        }
                    });
        }
        hostPeersGiveTheProduct(DType.FP16, DType.FP16, false, 512, 256, 384);
    }

    /** How things stood in the second call, which rank 1 did not start. */
    private static void assertReport(FabricException end, int rank, boolean inPlace) {
        FailureReport report = end.report().orElseThrow();
        assertEquals(rank, report.rank());
        assertEquals(2, report.call());
        assertEquals(inPlace ? 0 : 2, report.received().size(), report.table());
        assertTrue(report.received().stream().allMatch(r -> r.arrived() == 0), report.table());
        assertTrue(report.sent().stream().allMatch(s -> s.done() == 0), report.table());
        assertTrue(
                report.peers().stream().anyMatch(p -> p.rank() == 1 && p.call() == 1),
                report.table());
    }

    /** What was chosen was no slower in its trial than sequential, which is always tried. */
    @Test
    void autoIsTriedBesideSequential() {
        try (Arena arena = Arena.ofShared()) {
            DeviceProblem problem =
                    DeviceProblem.random(arena, Shards.of(900, 700), 512, 320, DType.FP16);
            try (CudaAllGatherMatmul alone =
                    problem.describe(CudaAllGatherMatmul.withHostPeers(gpu, 0)).prepare()) {
                assertTried(alone);
                alone.peerShard(1).copyFrom(problem.shard(1));
                callPoisoned(alone, problem.shard(0));
                assertRight(problem, alone);
            }
            try (World world = World.threads(2, DEADLINE)) {
                world.run(
                        fabric -> {
                            gpu.bind();
                            try (CudaAllGatherMatmul op =
                                    problem.describe(CudaAllGatherMatmul.on(fabric, gpu))
                                            .prepare()) {
                                assertTried(op);
                                callPoisoned(op, problem.shard(fabric.rank()));
                                fabric.barrier();
                                assertRight(problem, op);
                                fabric.barrier();
                            }
                        });
            }
        }
    }

    private static void assertTried(CudaAllGatherMatmul op) {
        Candidate chosen =
                op.candidates().stream().filter(Candidate::chosen).findFirst().orElseThrow();
        Candidate sequential =
                op.candidates().stream()
                        .filter(c -> c.algorithm() == Algorithm.SEQUENTIAL)
                        .findFirst()
                        .orElseThrow();
        assertEquals(chosen.algorithm().label(), op.plan().name());
        assertTrue(chosen.measuredNs() <= sequential.measuredNs(), op.candidates().toString());
        assertTrue(chosen.predictedNs() > 0, op.candidates().toString());
        assertThrows(IllegalStateException.class, op::lastResult);
    }

    /** Inputs change with every call, and two calls are queued behind each other. */
    @Test
    void callsInARowSeeTheirOwnInputs() {
        try (Arena arena = Arena.ofShared();
                DeviceCheck check = new DeviceCheck(gpu);
                GpuStream stream = GpuStream.create()) {
            Shards shards = Shards.even(512, 4);
            DeviceProblem problem = DeviceProblem.random(arena, shards, 256, 128, DType.FP16);
            DeviceMatrix b = DeviceProblem.upload(problem.b(), stream);
            try (CudaAllGatherMatmul op =
                    problem.describe(CudaAllGatherMatmul.withHostPeers(gpu, 1)).prepare()) {
                Random random = new Random(5);
                for (int i = 0; i < 20; i++) {
                    DeviceProblem.fill(problem.a(), random);
                    for (int r = 0; r < 4; r++) {
                        if (r != 1) {
                            op.peerShard(r).copyFrom(problem.shard(r));
                        }
                    }
                    callPoisoned(op, problem.shard(1));
                    DeviceMatrix a = DeviceProblem.upload(problem.a(), stream);
                    assertTrue(check.product(a, b, false, op.product(0)).passed(), "call " + i);
                }
            }
        }
    }

    /**
     * Two calls deep: each product is kept, in stream order, before the next call overwrites it.
     */
    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"MESH_PULL", "SEQUENTIAL"})
    void queuedCallsSeeTheirOwnInputs(Algorithm algorithm) {
        try (Arena arena = Arena.ofShared();
                DeviceCheck check = new DeviceCheck(gpu);
                GpuStream stream = GpuStream.create()) {
            DeviceProblem problem =
                    DeviceProblem.random(arena, Shards.even(768, 3), 512, 256, DType.FP16);
            DeviceMatrix b = DeviceProblem.upload(problem.b(), stream);
            try (CudaAllGatherMatmul op =
                    problem.describe(CudaAllGatherMatmul.withHostPeers(gpu, 0))
                            .algorithm(algorithm)
                            .prepare()) {
                op.peerShard(1).copyFrom(problem.shard(1));
                op.peerShard(2).copyFrom(problem.shard(2));
                Random random = new Random(7);
                DeviceMatrix[] inputs = new DeviceMatrix[12];
                DeviceMatrix[] kept = new DeviceMatrix[inputs.length];
                for (int i = 0; i < inputs.length; i++) {
                    DeviceProblem.fill(problem.shard(0), random);
                    inputs[i] = DeviceProblem.upload(problem.a(), stream);
                    kept[i] = DeviceProblem.like(op.product(0));
                }
                PendingCall<DeviceMatrix> pending = null;
                for (int i = 0; i < inputs.length; i++) {
                    pending = op.start(inputs[i].rows(0, 256), stream, View.PIPELINED);
                    kept[i].copyFrom(op.product(0), stream);
                    if (i > 0) {
                        pending.await();
                    }
                }
                pending.await();
                stream.synchronize();
                for (int i = 0; i < inputs.length; i++) {
                    assertTrue(check.product(inputs[i], b, false, kept[i]).passed(), "call " + i);
                }
                PendingCall<DeviceMatrix> none = pending;
                assertThrows(IllegalStateException.class, none::await);
                op.start(op.nextShard(), stream, View.PIPELINED);
                op.start(op.nextShard(), stream, View.PIPELINED);
                assertThrows(IllegalStateException.class, op::nextShard);
            }
        }
    }

    @Test
    void theMeasuringViewsRunTheirPart() {
        try (Arena arena = Arena.ofShared();
                GpuStream stream = GpuStream.create();
                DeviceCheck check = new DeviceCheck(gpu)) {
            DeviceProblem problem =
                    DeviceProblem.random(arena, Shards.even(512, 2), 256, 256, DType.FP16);
            try (CudaAllGatherMatmul op =
                    problem.describe(CudaAllGatherMatmul.withHostPeers(gpu, 0)).prepare()) {
                op.peerShard(1).copyFrom(problem.shard(1));
                callPoisoned(op, problem.shard(0));
                callPoisoned(op, problem.shard(0));
                check.poison(op.product(0));
                op.start(op.nextShard(), stream, View.COMM_ONLY).await();
                assertTrue(op.lastResult().elapsedNs() > 0);
                op.start(op.nextShard(), stream, View.COMPUTE_ONLY).await();
                assertRight(problem, op);
            }
        }
    }

    /** A grid that waits for what never comes ends by itself, and the GPU serves on. */
    @Test
    void aChunkThatNeverComesEndsTheGrid() {
        try (GpuStream stream = GpuStream.create();
                StallWord stall = new StallWord();
                DeviceBuffer memory = DeviceBuffer.allocate(1 << 20);
                DeviceBuffer flags = DeviceBuffer.allocate(4)) {
            dev.weft.ffi.CudaMemory.fill32Async(flags.address(), 0, 1, stream.handle());
            Shards shards = Shards.even(256, 1);
            GatedKernel kernel = GatedKernel.load(gpu, DType.FP16, DType.FP16, false, shards, 0, 0);
            DeviceMatrix m = new DeviceMatrix(memory.address(), DType.FP16, 256, 256, 256);
            TileSchedule schedule =
                    TileSchedule.of(
                            java.util.List.of(
                                    new RowRange(
                                            0,
                                            0,
                                            0,
                                            256,
                                            java.util.List.of(new RowRange.Piece(0, 256, 0, 0)),
                                            true)),
                            256,
                            kernel.shape());
            try (GatedProduct product =
                    new GatedProduct(
                            kernel,
                            schedule,
                            new GatedProduct.Operands(
                                    java.util.List.of(java.util.List.of(m)), m, false, m),
                            new GatedProduct.Gates(flags.address(), stall, 50_000_000))) {
                product.launch(0, 1, stream);
                stream.synchronize();
                StallWord.Stall raised = stall.raised().orElseThrow();
                assertEquals(0, raised.flag());
                assertEquals(0, raised.seen());
                assertEquals(1, raised.expected());
            }
        }
        hostPeersGiveTheProduct(DType.FP16, DType.FP16, false, 512, 256, 384);
    }

    @Test
    void whatDoesNotFitIsRefusedWithItsValues() {
        try (Arena arena = Arena.ofShared()) {
            DeviceProblem problem =
                    DeviceProblem.random(arena, Shards.even(64, 2), 64, 64, DType.FP16);
            CudaAllGatherMatmulBuilder ring =
                    problem.describe(CudaAllGatherMatmul.withHostPeers(gpu, 0))
                            .algorithm(Algorithm.RING);
            assertThrows(IllegalArgumentException.class, ring::prepare);
            CudaAllGatherMatmulBuilder crowded =
                    problem.describe(CudaAllGatherMatmul.withHostPeers(gpu, 0))
                            .computeWorkers(1_000_000);
            assertTrue(
                    assertThrows(IllegalArgumentException.class, crowded::prepare)
                            .getMessage()
                            .contains("1000000 compute blocks"));
        }
    }
}
