package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.fabric.World;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The Ascend example's operator on device matrices, by ranks that share a GPU. */
@Tag("gpu")
class AscendCudaIT {

    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    /** K is tiled, blocks are as many as peers, twice as many, and fewer. */
    @Test
    void theOperatorPushesWaitsForSummariesAndIsRight() {
        for (Shards shards : List.of(Shards.even(1024, 4), Shards.of(300, 0, 128, 96))) {
            for (int commBlocks : List.of(3, 6, 2, 1)) {
                run(shards, commBlocks);
            }
        }
    }

    private void run(Shards shards, int commBlocks) {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(shards.ranks(), Duration.ofSeconds(10))) {
            Matrix rowsOfA = Matrix.allocate(arena, DType.FP16, shards.totalRows(), 512);
            Matrix hostB = Matrix.allocate(arena, DType.FP16, 512, 256);
            new NormalData(11, 0).fill(rowsOfA);
            new NormalData(11, 1).fill(hostB);
            world.run(
                    fabric -> {
                        gpu.bind();
                        int rank = fabric.rank();
                        try (RingCudaIT.Bench bench = new RingCudaIT.Bench();
                                DeviceCheck check = new DeviceCheck(gpu)) {
                            DeviceMatrix a = bench.copy(rowsOfA);
                            DeviceMatrix b = bench.copy(hostB);
                            DeviceMatrix shard =
                                    bench.copy(
                                            rowsOfA.rows(shards.firstRow(rank), shards.rows(rank)));
                            fabric.barrier();
                            try (CudaAllGatherMatmul op =
                                    (CudaAllGatherMatmul)
                                            Ascend.allGatherGemm(
                                                    Place.on(gpu),
                                                    fabric,
                                                    shards,
                                                    DType.FP16,
                                                    b,
                                                    32,
                                                    32,
                                                    8,
                                                    commBlocks)) {
                                assertEquals("mesh-push", op.plan().name());
                                assertTrue(op.plan().chunks().colChunks() > 1, "K is tiled");
                                assertEquals(commBlocks, FgccProblem.plan(op).lanes().size());
                                for (int call = 0; call < 4; call++) {
                                    check.poison(op.product(0));
                                    fabric.barrier();
                                    op.call(shard);
                                }
                                fabric.barrier();
                                assertTrue(check.product(a, b, false, op.product(0)).passed());
                                assertTrue(check.equal(op.gathered().orElseThrow(), a).passed());
                                fabric.barrier();
                            }
                        }
                    });
        }
    }
}
