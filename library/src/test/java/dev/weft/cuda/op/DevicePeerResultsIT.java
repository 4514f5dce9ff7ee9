package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.op.Operator.PendingCall;
import dev.weft.plan.Algorithm;
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

/** What a call gave the other ranks on a real GPU, between threads; {@link CudaProcessesIT} too. */
@Tag("gpu")
class DevicePeerResultsIT {

    private static final Duration DEADLINE = Duration.ofSeconds(15);
    private static final int RANKS = 3;
    private static final int CALLS = 8;
    private static final long K = 264;

    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    /** How rows travel and products are made. */
    enum Way {
        DIRECT(false),
        PULL(true),
        PUSH(true),
        RING(false);

        private final boolean keepsGathered;

        Way(boolean keepsGathered) {
            this.keepsGathered = keepsGathered;
        }

        private CudaAllGatherMatmulBuilder on(CudaAllGatherMatmulBuilder builder) {
            builder.output(DType.FP32).sharedResults();
            return switch (this) {
                case DIRECT -> builder.algorithm(Algorithm.DIRECT);
                case PULL -> builder.algorithm(Algorithm.MESH_PULL);
                case PUSH -> builder.algorithm(Algorithm.MESH_PUSH);
                case RING -> builder.pingPong(2);
            };
        }
    }

    /**
     * Several A, so that what is old or too new differs, and a B of another width on every rank.
     *
     * @param goldens by A and B
     */
    record Inputs(Shards shards, List<Matrix> as, List<Matrix> bs, List<List<Matrix>> goldens) {

        static Inputs create(Arena arena, Gpu gpu, int ranks) {
            long[] rows = new long[ranks];
            java.util.Arrays.setAll(rows, r -> r == 1 ? 0 : 70 + 50L * r);
            Inputs inputs =
                    new Inputs(
                            Shards.of(rows),
                            new ArrayList<>(),
                            new ArrayList<>(),
                            new ArrayList<>());
            for (int rank = 0; rank < ranks; rank++) {
                inputs.bs.add(random(arena, K, 33 + 40L * rank, 90 + rank));
            }
            for (int input = 0; input < 3; input++) {
                Matrix a = random(arena, inputs.shards.totalRows(), K, input);
                inputs.as.add(a);
                List<Matrix> products = new ArrayList<>();
                for (Matrix b : inputs.bs) {
                    DeviceProblem problem =
                            new DeviceProblem(inputs.shards, a, b, false, DType.FP32);
                    products.add(PingPongRingIT.golden(arena, problem, gpu));
                }
                inputs.goldens.add(products);
            }
            return inputs;
        }

        private static Matrix random(Arena arena, long rows, long cols, long seed) {
            Matrix matrix = Matrix.allocate(arena, DType.BF16, rows, cols);
            DeviceProblem.fill(matrix, new Random(seed));
            return matrix;
        }

        Matrix shard(int input, int rank) {
            return as.get(input).rows(shards.firstRow(rank), shards.rows(rank));
        }

        CudaAllGatherMatmulBuilder describe(Fabric fabric, Gpu gpu) {
            return CudaAllGatherMatmul.on(fabric, gpu)
                    .a(shards, DType.BF16)
                    .b(bs.get(fabric.rank()), false)
                    .output(DType.BF16);
        }
    }

    /** One rank's calls, each with other rows, after which it reads what all ranks got. */
    static void read(Fabric fabric, Arena arena, Gpu gpu, Inputs inputs, Way way) {
        int rank = fabric.rank();
        try (CudaAllGatherMatmul op = way.on(inputs.describe(fabric, gpu)).prepare();
                GpuStream stream = GpuStream.create()) {
            assertThrows(IllegalStateException.class, () -> op.peerProduct(0, 0));
            for (int call = 0; call < CALLS; call++) {
                int input = call % 3;
                op.nextShard().upload(inputs.shard(input, rank), stream);
                op.call(op.nextShard());
                for (int i = 1; i <= fabric.size(); i++) {
                    int peer = (rank + i) % fabric.size();
                    String what = "%s, rank %d of %d, call %d".formatted(way, peer, rank, call);
                    Matrix golden = inputs.goldens().get(input).get(peer);
                    DeviceMatrix c = op.peerProduct(peer, 0);
                    assertEquals(golden.describe(), c.describe(), what);
                    assertSame(golden, c, arena, stream, what);
                    if (way.keepsGathered) {
                        assertSame(
                                inputs.as().get(input), op.peerGathered(peer), arena, stream, what);
                    } else {
                        assertThrows(IllegalStateException.class, () -> op.peerGathered(peer));
                    }
                }
            }
        }
    }

    private static void assertSame(
            Matrix expected, DeviceMatrix seen, Arena arena, GpuStream stream, String what) {
        Matrix host = Matrix.allocate(arena, seen.dtype(), seen.rows(), seen.cols());
        seen.download(host, stream);
        assertEquals(-1, expected.firstDifferentRow(host), what);
    }

    @ParameterizedTest
    @EnumSource
    void everyRankReadsWhatTheCallGaveTheOthers(Way way) {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(RANKS, DEADLINE)) {
            Inputs inputs = Inputs.create(arena, gpu, RANKS);
            world.run(
                    fabric -> {
                        gpu.bind();
                        read(fabric, arena, gpu, inputs, way);
                    });
        }
    }

    /**
     * Rank 0 queues that it reads the others' results, and two calls more, on a stream that is held
     * back: none of the ranks writes over them until it has read.
     */
    @ParameterizedTest
    @EnumSource
    void nothingIsWrittenOverThatAPeerHasYetToRead(Way way) {
        try (Arena arena = Arena.ofShared();
                Hold hold = new Hold(gpu);
                World world = World.threads(RANKS, DEADLINE)) {
            Inputs inputs = Inputs.create(arena, gpu, RANKS);
            world.run(
                    fabric -> {
                        gpu.bind();
                        heldReads(fabric, arena, inputs, way, hold);
                    });
            assertFalse(hold.ranOut());
        }
    }

    private void heldReads(Fabric fabric, Arena arena, Inputs inputs, Way way, Hold hold) {
        int rank = fabric.rank();
        try (CudaAllGatherMatmul op = way.on(inputs.describe(fabric, gpu)).prepare();
                GpuStream stream = GpuStream.create()) {
            op.nextShard().upload(inputs.shard(0, rank), stream);
            op.start(op.nextShard(), stream, View.PIPELINED).await();
            DeviceMatrix later = DeviceProblem.upload(inputs.shard(1, rank), stream);
            List<DeviceMatrix> theirs = new ArrayList<>();
            List<DeviceMatrix> kept = new ArrayList<>();
            for (int peer = 0; peer < RANKS; peer++) {
                theirs.add(op.peerProduct(peer, 0));
                if (way.keepsGathered) {
                    theirs.add(op.peerGathered(peer));
                }
            }
            theirs.forEach(one -> kept.add(DeviceProblem.like(one)));
            fabric.barrier();
            if (rank == 0) {
                hold.queue(stream);
            }
            for (int i = 0; i < kept.size(); i++) {
                kept.get(i).copyFrom(theirs.get(i), stream);
            }
            PendingCall<DeviceMatrix> pending = op.start(later, stream, View.PIPELINED);
            op.start(later, stream, View.PIPELINED);
            try {
                assertFalse(pending.isDone());
                fabric.barrier();
            } finally {
                hold.release();
            }
            pending.await();
            pending.await();
            stream.synchronize();
            int next = 0;
            for (int peer = 0; peer < RANKS; peer++) {
                String what = "%s, rank %d of %d".formatted(way, peer, rank);
                Matrix golden = inputs.goldens().getFirst().get(peer);
                assertSame(golden, kept.get(next++), arena, stream, what);
                if (way.keepsGathered) {
                    assertSame(inputs.as().getFirst(), kept.get(next++), arena, stream, what);
                }
            }
            Matrix golden = inputs.goldens().get(1).get(rank);
            assertSame(golden, op.product(0), arena, stream, "afterwards");
            fabric.barrier();
        }
    }

    @Test
    void whatCannotBeReachedIsRefusedInOneLine() {
        String shared = "sharedResults() and, for gathered A, that it is kept";
        String reached = "ranks that reach each other's GPUs";
        try (Arena arena = Arena.ofShared();
                World world = World.threads(2, DEADLINE)) {
            DeviceProblem problem =
                    DeviceProblem.random(arena, Shards.even(64, 2), 64, 64, DType.FP16);
            world.run(
                    fabric -> {
                        gpu.bind();
                        CudaAllGatherMatmulBuilder plain =
                                problem.describe(CudaAllGatherMatmul.on(fabric, gpu));
                        refuses(plain.algorithm(Algorithm.MESH_PULL), fabric.rank(), shared);
                        CudaAllGatherMatmulBuilder staged =
                                problem.describe(CudaAllGatherMatmul.on(fabric, gpu)).staged();
                        refuses(
                                staged.algorithm(Algorithm.MESH_PULL).sharedResults(),
                                fabric.rank(),
                                reached);
                    });
            CudaAllGatherMatmulBuilder alone =
                    problem.describe(CudaAllGatherMatmul.withHostPeers(gpu, 0));
            refuses(alone.algorithm(Algorithm.MESH_PULL).sharedResults(), 0, reached);
        }
    }

    private static void refuses(CudaAllGatherMatmulBuilder builder, int rank, String expected) {
        try (CudaAllGatherMatmul op = builder.prepare()) {
            op.call(op.nextShard());
            String says =
                    "the result of rank 1 cannot be reached from rank %d: expected %s"
                            .formatted(rank, expected);
            assertEquals(
                    says,
                    assertThrows(IllegalStateException.class, () -> op.peerProduct(1, 0))
                            .getMessage());
            assertEquals(
                    says,
                    assertThrows(IllegalStateException.class, () -> op.peerGathered(1))
                            .getMessage());
        }
    }
}
