package dev.weft.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.step.StepPlan;
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
            GatherRequest request = PlanCases.request(chunks, 1, Hosts.one(ranks));
            PlanBuilder builder = new PlanBuilder("ring", request, 1);
            for (int step = 0; step + 1 < ranks; step++) {
                for (int rank = 0; rank < ranks; rank++) {
                    builder.put(rank, 0, (rank + 1) % ranks, Math.floorMod(rank - step, ranks));
                }
            }
            assertEquals(Algorithm.RING.plans(request), builder.build(), "seed " + seed);
        }
    }

    @Test
    void getsAreThoseOfAMesh() {
        Chunks chunks = Chunks.byRows(Shards.of(4, 0, 3), 5, 1, 2);
        GatherRequest request = PlanCases.request(chunks, 1, Hosts.one(3));
        PlanBuilder builder = new PlanBuilder("mesh-pull", request, 1);
        for (int rank = 0; rank < 3; rank++) {
            for (int distance = 1; distance < 3; distance++) {
                int source = (rank + distance) % 3;
                builder.get(rank, 0, source, source);
            }
        }
        assertEquals(Algorithm.MESH_PULL.plans(request), builder.build());
    }

    @Test
    void whatIsForgottenOrComesTwiceIsFound() {
        Chunks chunks = Chunks.byRows(Shards.of(1, 1, 1), 1, 1, 1);
        GatherRequest request = PlanCases.request(chunks, 1, Hosts.one(3));
        assertFault(
                "algorithm 'mine': chunk 0 of rank 1 never gets to rank 0",
                new PlanBuilder("mine", request, 1).put(0, 0, 1, 0));
        assertFault(
                "algorithm 'mine': rank 1 gets chunk 0 of rank 0, which it has already",
                new PlanBuilder("mine", request, 1).put(0, 0, 1, 0).get(1, 0, 0, 0));
        // Each waits for the other to have it.
        assertFault(
                "algorithm 'mine': chunk 0 of rank 1 never gets to rank 0",
                new PlanBuilder("mine", request, 1)
                        .put(0, 0, 1, 2)
                        .put(1, 0, 0, 2)
                        .put(0, 0, 1, 0)
                        .put(1, 0, 0, 1));
    }

    @Test
    void rowsOfOthersAreNotGotFromAnotherHost() {
        Chunks chunks = Chunks.byRows(Shards.of(1, 1, 1), 1, 1, 1);
        GatherRequest request = PlanCases.request(chunks, 1, Hosts.of(2, 1));
        PlanBuilder builder = new PlanBuilder("mine", request, 1).get(2, 0, 1, 1);
        PlanException fault = assertThrows(PlanException.class, () -> builder.get(2, 0, 1, 0));
        assertTrue(fault.getMessage().contains("expected a put"), fault.getMessage());
    }

    private static void assertFault(String message, PlanBuilder builder) {
        PlanException fault = assertThrows(PlanException.class, builder::build);
        assertEquals(message, fault.getMessage());
    }

    /** A writer that is not Weft's, of what Weft would write. */
    private record Own() implements GatherWriter {

        @Override
        public String label() {
            return "mine";
        }

        @Override
        public List<StepPlan> plans(GatherRequest request) {
            return Algorithm.RING.plans(request);
        }
    }

    @Test
    void plansThatAreTooManyToProveAreNamed() {
        Chunks chunks = Chunks.byRows(Shards.of(150_000, 0), 1, 1, 1);
        GatherRequest request = PlanCases.request(chunks, 1, Hosts.one(2));
        GatherWriter own = new GuardedWriter.OfGather(new Own());
        assertEquals(
                Optional.of("the plans of 2 ranks were not proved: more than 200000 steps"),
                PlanChecker.checkGiven(own, own.plans(request), request));
    }

    @Test
    void digestsTellPlansApart() {
        Chunks chunks = Chunks.byRows(Shards.of(2, 2), 1, 1, 1);
        long ring = digest(Algorithm.RING, chunks);
        assertEquals(ring, digest(Algorithm.RING, Chunks.byRows(Shards.of(2, 2), 1, 1, 1)));
        assertNotEquals(ring, digest(Algorithm.MESH_PULL, chunks));
        assertNotEquals(ring, digest(Algorithm.pingPongRing(), chunks));
        assertNotEquals(ring, digest(Algorithm.RING, Chunks.byRows(Shards.of(2, 2), 1, 2, 2)));
        GatherWriter own = new GuardedWriter.OfGather(new Own());
        assertEquals(digest(own, chunks), digest(own, chunks));
        assertNotEquals(digest(own, chunks), digest(own, Chunks.byRows(Shards.of(2, 1), 1, 1, 1)));
    }

    private static long digest(GatherWriter writer, Chunks chunks) {
        Hosts hosts = Hosts.one(chunks.shards().ranks());
        return PlanChecker.digest(writer, PlanCases.request(chunks, 1, hosts));
    }
}
