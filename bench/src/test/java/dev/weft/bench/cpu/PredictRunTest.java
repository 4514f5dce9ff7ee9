package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class PredictRunTest {

    @Test
    void unevenShardsGrowWithTheRank() {
        PredictRun run = new PredictRun(Algorithm.RING, 3, 2048, 64, 32, DType.FP32, false);
        assertEquals(Shards.of(342, 683, 1023), run.shards());
        PredictRun even = new PredictRun(Algorithm.RING, 3, 2048, 64, 32, DType.FP32, true);
        assertEquals(Shards.even(2048, 3), even.shards());
    }

    @Test
    void theRunsCoverAlgorithmsRanksAndTypes() {
        List<PredictRun> all = PredictRun.gathered();
        assertTrue(all.size() >= 16);
        assertEquals(all.size(), new HashSet<>(all).size());
        Set<String> kinds = new HashSet<>();
        all.forEach(run -> kinds.add(run.algorithm() + " " + run.ranks()));
        for (int ranks : new int[] {2, 3, 4, 8}) {
            for (Algorithm algorithm :
                    List.of(
                            Algorithm.RING,
                            Algorithm.BIDIRECTIONAL_RING,
                            Algorithm.MESH_PUSH,
                            Algorithm.MESH_PULL,
                            Algorithm.DIRECT)) {
                assertTrue(kinds.contains(algorithm + " " + ranks), algorithm + " " + ranks);
            }
        }
        assertTrue(all.stream().anyMatch(run -> run.dtype() == DType.BF16));
        assertTrue(all.stream().anyMatch(run -> !run.even()));
        Set<Object> summed = new HashSet<>();
        PredictRun.summed().forEach(run -> summed.add(run.reduction() + " " + run.all()));
        for (Reduction each : List.of(Reduction.CHAIN, Reduction.MESH_PUSH, Reduction.DIRECT)) {
            assertTrue(summed.containsAll(Set.of(each + " true", each + " false")), summed + "");
        }
    }
}
