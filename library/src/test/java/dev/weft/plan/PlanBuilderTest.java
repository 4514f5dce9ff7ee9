package dev.weft.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Plans from transfers alone are those that Weft would write for them. */
class PlanBuilderTest {

    @Test
    void aRingIsTheRing() {
        for (long seed = 0; seed < 40; seed++) {
            Chunks chunks = PlanCases.randomChunks(seed, 2 + (int) seed % 5);
            int ranks = chunks.shards().ranks();
            PlanBuilder builder = new PlanBuilder("ring", chunks, 1);
            for (int step = 0; step + 1 < ranks; step++) {
                for (int rank = 0; rank < ranks; rank++) {
                    builder.put(rank, 0, (rank + 1) % ranks, Math.floorMod(rank - step, ranks));
                }
            }
            List<RankPlan> plans = builder.build();
            assertEquals(PlanCases.plans(Algorithm.RING, chunks, 1), plans, "seed " + seed);
            assertEquals(Optional.empty(), PlanChecker.checkGiven(plans, Hosts.one(ranks)));
        }
    }

    @Test
    void getsAreThoseOfAMesh() {
        Chunks chunks = Chunks.byRows(Shards.of(4, 0, 3), 5, 1, 2);
        PlanBuilder builder = new PlanBuilder("mesh-pull", chunks, 1);
        for (int rank = 0; rank < 3; rank++) {
            for (int distance = 1; distance < 3; distance++) {
                int source = (rank + distance) % 3;
                builder.get(rank, 0, source, source);
            }
        }
        assertEquals(PlanCases.plans(Algorithm.MESH_PULL, chunks, 1), builder.build());
    }

    @Test
    void whatIsForgottenOrGoesRoundIsFound() {
        Chunks chunks = Chunks.byRows(Shards.of(1, 1, 1), 1, 1, 1);
        List<RankPlan> forgotten = new PlanBuilder("mine", chunks, 1).put(0, 0, 1, 0).build();
        PlanException fault =
                assertThrows(
                        PlanException.class, () -> PlanChecker.checkGiven(forgotten, Hosts.one(3)));
        assertTrue(fault.getMessage().contains("never delivered"), fault.getMessage());
    }

    @Test
    void plansThatAreTooManyToProveAreNamed() {
        Chunks chunks = Chunks.byRows(Shards.of(1_500_000, 0), 1, 1, 1_500_000);
        List<RankPlan> plans = new PlanBuilder("mine", chunks, 1).build();
        assertEquals(
                Optional.of(
                        "the plans of 2 ranks were not proved: 3000000 deliveries, expected at"
                                + " most 2000000"),
                PlanChecker.checkGiven(plans, Hosts.one(2)));
    }

    @Test
    void digestsTellPlansApart() {
        Chunks chunks = Chunks.byRows(Shards.of(2, 2), 1, 1, 1);
        List<RankPlan> ring = PlanCases.plans(Algorithm.RING, chunks, 1);
        assertEquals(PlanDigest.of(ring), PlanDigest.of(List.copyOf(ring)));
        assertNotEquals(
                PlanDigest.of(ring),
                PlanDigest.of(PlanCases.plans(Algorithm.MESH_PULL, chunks, 1)));
        assertNotEquals(
                PlanDigest.of(ring),
                PlanDigest.of(
                        ring.stream().map(p -> p.with(p.name(), Pacing.GATHER_FIRST)).toList()));
    }
}
