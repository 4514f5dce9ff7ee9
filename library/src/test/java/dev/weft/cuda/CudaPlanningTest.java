package dev.weft.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cuda.CudaPlanning.Wishes;
import dev.weft.plan.Algorithm;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import org.junit.jupiter.api.Test;

/** Plans of a rank whose peers' rows lie in host memory: no GPU and no fabric is asked. */
class CudaPlanningTest {

    private static final TileShape SHAPE = new TileShape(256, 256, 128, 66);
    private static final long K = 4096;
    private static final long N = 4096;

    private static CudaPlanning planning(Wishes wishes) {
        return new CudaPlanning(null, null, 1, Shards.even(8192, 4), DType.FP16, wishes);
    }

    private static Wishes wishes(Algorithm algorithm, CudaEngine engine) {
        return new Wishes(algorithm, engine, 0, 0, 0, 0);
    }

    @Test
    void automaticPullsWholeShardsAndCutsWhatArrivesLast() {
        CudaPlanning planning = planning(wishes(Algorithm.AUTO, CudaEngine.GATED));
        RankPlan plan = planning.agreedPlan(K);
        assertEquals(Algorithm.MESH_PULL, plan.algorithm());
        assertEquals(4, plan.chunks().total());
        assertEquals(1, plan.lanes().size());
        CopyList list = planning.copies(plan, N, SHAPE);
        assertTrue(list.flags() > plan.chunks().total(), list.flags() + " flags");
        assertEquals(0, list.stretches().getFirst().pieces().size());
        assertEquals(1, list.stretches().getFirst().source());
        assertTrue(list.stretches().getLast().narrow());
    }

    @Test
    void whoChoosesChunksOrSeveralStreamsGetsThem() {
        Wishes chunks = new Wishes(Algorithm.AUTO, CudaEngine.GATED, 100, 0, 0, 0);
        RankPlan plan = planning(chunks).agreedPlan(K);
        assertEquals(100, plan.chunks().chunkRows(0));
        assertEquals(plan.chunks().total(), planning(chunks).copies(plan, N, SHAPE).flags());
        Wishes streams = new Wishes(Algorithm.MESH_PULL, CudaEngine.GATED, 0, 0, 0, 2);
        assertEquals(2, planning(streams).agreedPlan(K).lanes().size());
        Wishes splits = new Wishes(Algorithm.MESH_PULL, CudaEngine.GATED, 0, 8, 128, 0);
        assertEquals(4 * 8 * (K / 128), planning(splits).agreedPlan(K).chunks().total());
    }

    @Test
    void cublasTakesChunksOfSixteenMebibytesUncut() {
        CudaPlanning planning = planning(wishes(Algorithm.AUTO, CudaEngine.CUBLAS));
        RankPlan plan = planning.agreedPlan(2 * K);
        assertEquals(1024, plan.chunks().chunkRows(0));
        assertEquals(plan.chunks().total(), planning.copies(plan, N, null).flags());
    }

    @Test
    void sequentialRowsWaitForNothing() {
        CudaPlanning planning = planning(wishes(Algorithm.SEQUENTIAL, CudaEngine.GATED));
        CopyList list = planning.copies(planning.agreedPlan(K), N, SHAPE);
        assertTrue(list.stretches().stream().allMatch(s -> s.pieces().isEmpty()));
    }

    @Test
    void oneRankGathersNothing() {
        Wishes wishes = wishes(Algorithm.AUTO, CudaEngine.GATED);
        CudaPlanning planning =
                new CudaPlanning(null, null, 0, Shards.even(100, 1), DType.BF16, wishes);
        assertEquals(Algorithm.SEQUENTIAL, planning.agreedPlan(K).algorithm());
    }

    @Test
    void whatDoesNotFitIsRefusedWithItsValues() {
        assertRefused(wishes(Algorithm.RING, CudaEngine.GATED), "ring");
        assertRefused(new Wishes(Algorithm.AUTO, CudaEngine.GATED, 10, 2, 0, 0), "10");
        assertRefused(new Wishes(Algorithm.AUTO, CudaEngine.GATED, 0, 0, 100, 0), "100");
    }

    private static void assertRefused(Wishes wishes, String named) {
        IllegalArgumentException refusal =
                assertThrows(IllegalArgumentException.class, () -> planning(wishes).agreedPlan(K));
        assertTrue(refusal.getMessage().contains(named), refusal.getMessage());
    }
}
