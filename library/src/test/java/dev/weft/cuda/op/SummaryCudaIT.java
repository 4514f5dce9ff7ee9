package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.kernel.PinnedBuffer;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.op.Operator.PendingCall;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunk;
import dev.weft.plan.Chunks;
import dev.weft.plan.GatherView;
import dev.weft.plan.GatherView.Move;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Rows that come with all their flags, but without the counter of their lane, on a GPU. */
@Tag("gpu")
class SummaryCudaIT {

    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    /**
     * All of rank 1's chunks are there, with their flags, but the counter of the last one is not:
     * its rows are not multiplied until it is.
     */
    @Test
    void rowsWaitForTheCounterOfTheirLane() {
        Shards shards = Shards.even(512, 2);
        try (Arena arena = Arena.ofShared();
                Hold hold = new Hold(gpu);
                World world = World.threads(2, Duration.ofSeconds(15))) {
            DeviceProblem problem =
                    DeviceProblem.random(arena, shards, 512, 256, DType.FP16, DType.FP32, false);
            Matrix golden = PingPongRingIT.golden(arena, problem, gpu);
            world.run(
                    fabric -> {
                        gpu.bind();
                        AtomicInteger held = new AtomicInteger(-1);
                        try (GpuStream stream = GpuStream.create();
                                DeviceCheck check = new DeviceCheck(gpu);
                                CudaAllGatherMatmul op =
                                        CudaAllGatherMatmul.on(fabric, gpu)
                                                .copies(hold.beforeCounterOf(held::get))
                                                .a(shards, DType.FP16)
                                                .b(DeviceProblem.upload(problem.b(), stream))
                                                .output(DType.FP32)
                                                .algorithm(Algorithm.MESH_PUSH)
                                                .computeWorkers(8)
                                                .commWorkers(1)
                                                .chunkRows(32)
                                                .chunkCols(128)
                                                .waitForSummary()
                                                .prepare()) {
                            op.nextShard().upload(problem.shard(fabric.rank()), stream);
                            check.poison(op.product(0));
                            if (fabric.rank() == 1) {
                                held.set(op.plan().chunks().tag(1, lastOfRankOne(op).chunk()));
                            }
                            fabric.barrier();
                            heldCall(fabric, op, golden, hold);
                        }
                    });
            assertFalse(hold.ranOut());
        }
    }

    private static Move lastOfRankOne(CudaAllGatherMatmul op) {
        GatherView plan = new GatherView(op.plan().steps().get(1), op.plan().chunks());
        return plan.lanes().getFirst().moves().getLast();
    }

    private static void heldCall(Fabric fabric, CudaAllGatherMatmul op, Matrix golden, Hold hold) {
        Chunks chunks = op.plan().chunks();
        int count = chunks.count(1);
        Chunk last = chunks.chunk(1, lastOfRankOne(op).chunk());
        long ownRows = chunks.shards().rows(0);
        long bytes = Matrix.contiguousBytes(golden.dtype(), golden.rows(), golden.cols());
        try (PinnedBuffer host = PinnedBuffer.allocate(bytes);
                Flags flags = new Flags(op);
                GpuStream looks = GpuStream.create()) {
            Matrix c = Matrix.of(host.segment(), golden.dtype(), golden.rows(), golden.cols());
            fabric.barrier();
            PendingCall<DeviceMatrix> pending = op.start(op.nextShard());
            try {
                if (fabric.rank() == 0) {
                    PingPongRingIT.await(
                            "all chunks of rank 1",
                            () ->
                                    IntStream.range(0, count)
                                            .allMatch(chunk -> flags.haveCome(1, chunk, 1)));
                    PingPongRingIT.await(
                            "the product of the own rows",
                            () -> {
                                op.product(0).download(c, looks);
                                return c.rows(0, ownRows).bitwiseEquals(golden.rows(0, ownRows));
                            });
                    for (long row = 0; row < last.rows(); row++) {
                        long at = ownRows + last.firstRow() + row;
                        assertFalse(c.rows(at, 1).bitwiseEquals(golden.rows(at, 1)), "row " + at);
                    }
                    assertFalse(pending.isDone());
                }
                fabric.barrier();
            } finally {
                hold.release();
            }
            pending.await();
            op.product(0).download(c, looks);
            assertEquals(-1, golden.firstDifferentRow(c));
            fabric.barrier();
        }
    }
}
