package dev.weft.cuda.exec;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cuda.exec.CopyList.LaneCounters;
import dev.weft.cuda.kernel.TileSchedule.Counter;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.GatherRequest;
import dev.weft.plan.GatherView;
import dev.weft.plan.GatherView.Lane;
import dev.weft.plan.GatherView.Move;
import dev.weft.plan.Hosts;
import dev.weft.plan.Shards;
import dev.weft.plan.step.StepPlan;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What lanes count at their destinations, and what rows there wait for. */
class LaneCountersTest {

    private static final int LANES = 5;

    @ParameterizedTest
    @EnumSource(names = {"RING", "BIDIRECTIONAL_RING", "MESH_PUSH", "MESH_PULL", "SEQUENTIAL"})
    void whatALaneWritesIsWhatItsReceiverWaitsFor(Algorithm algorithm) {
        for (long seed = 0; seed < 100; seed++) {
            Random random = new Random(seed);
            long[] rows = random.longs(2 + random.nextInt(5), 0, 20).toArray();
            Chunks chunks = Chunks.byRows(Shards.of(rows), 8, 1 + random.nextInt(5), 4);
            int lanes = 1 + random.nextInt(3);
            List<StepPlan> plans =
                    algorithm.plans(new GatherRequest(chunks, lanes, Hosts.one(rows.length), 1));
            List<LaneCounters> counters =
                    plans.stream()
                            .map(plan -> CopyList.of(plans, plan.rank(), chunks, null))
                            .map(list -> LaneCounters.of(list, rows.length, LANES))
                            .toList();
            for (GatherView plan : GatherView.of(plans, chunks)) {
                assertLanes(plan, counters, chunks, "seed " + seed);
            }
        }
    }

    private static void assertLanes(
            GatherView plan, List<LaneCounters> counters, Chunks chunks, String what) {
        LaneCounters own = counters.get(plan.rank());
        assertEquals(plan.ranks() * LANES, own.words(), what);
        for (int c = 0; c < chunks.count(plan.rank()); c++) {
            assertNull(own.arriving().get(chunks.tag(plan.rank(), c)), what);
        }
        for (int l = 0; l < plan.lanes().size(); l++) {
            Lane lane = plan.lanes().get(l);
            Map<Integer, Integer> latest = new HashMap<>();
            for (int i = 0; i < lane.moves().size(); i++) {
                Move transfer = lane.moves().get(i);
                int tag = chunks.tag(transfer.source(), transfer.chunk());
                Counter written = own.lanes().get(l).get(i);
                assertEquals(counters.get(transfer.to()).arriving().get(tag), written, what);
                int word = written.word() - chunks.total();
                assertTrue(word >= 0 && word < own.words(), what);
                // Only this lane writes the word, and every value is one more.
                assertEquals(plan.rank() * LANES + lane.index(), word, what);
                int before = latest.getOrDefault(transfer.to(), 2 * written.count());
                assertEquals(before + 1, written.value(3), what);
                latest.put(transfer.to(), written.value(3));
                assertEquals(3 * written.count(), written.last(3), what);
            }
        }
    }
}
