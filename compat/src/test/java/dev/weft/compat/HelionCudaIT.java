package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.fabric.ChildJvm;
import dev.weft.fabric.FabricException.PeerFailedException;
import dev.weft.fabric.FabricException.StallException;
import dev.weft.fabric.World;
import dev.weft.fabric.memory.ShmJob;
import dev.weft.tensor.DType;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Gathered A and product of the Helion calls on a GPU, and how calls end that cannot succeed. */
@Tag("gpu")
class HelionCudaIT extends HelionOnGpu {

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
