package dev.weft.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

class PlanTextTest {

    private static final Chunks CHUNKS = Chunks.byRows(Shards.of(4, 4, 4), 6, 1, 2);

    @Test
    void aRing() {
        List<String> lines = PlanText.of(Algorithm.RING.plans(CHUNKS, 1, Hosts.one(3)));
        assertEquals(
                List.of(
                        "ring: " + CHUNKS,
                        "blocks are multiplied as they arrive; rows are gathered",
                        "rank 0",
                        "  lane 0",
                        "    put chunks 0 to 3 of rank 0 to rank 1",
                        "    put chunks 0 to 3 of rank 2 to rank 1, each after it has arrived",
                        "  multiplies",
                        "    rows 0 to 3 of rank 0, in 2 blocks",
                        "    rows 0 to 3 of rank 2, in 2 blocks",
                        "    rows 0 to 3 of rank 1, in 2 blocks"),
                lines.subList(0, 10));
        assertEquals(2 + 3 * 8, lines.size());
    }

    @Test
    void whatWaitsForCreditOrForEverything() {
        String pingPong = String.join("\n", PlanText.of(PlanCases.pingPongRing(chunks(4), 0)));
        assertTrue(
                pingPong.contains(
                        "put chunk 0 of rank 2 to rank 1, each after it has arrived, once that rank"
                                + " has released 1"),
                pingPong);
        assertTrue(pingPong.contains("releases the shards of ranks [3, 2, 1]"), pingPong);
        String sequential =
                String.join(
                        "\n", PlanText.of(Algorithm.SEQUENTIAL.plans(chunks(2), 1, Hosts.one(2))));
        assertTrue(
                sequential.contains(
                        "products wait for the whole gather, which a transport may do in its own"
                                + " way"),
                sequential);
        assertTrue(sequential.contains("get chunk 0 of rank 1 from rank 1"), sequential);
    }

    private static Chunks chunks(int ranks) {
        return Chunks.byRows(Shards.even(ranks, ranks), 1, 1, 1);
    }
}
