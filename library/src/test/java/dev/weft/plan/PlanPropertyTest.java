package dev.weft.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Whatever the planner writes, the checker accepts. */
class PlanPropertyTest {

    @Test
    void smallGroupsWithEveryNumberOfLanes() {
        for (int ranks = 1; ranks <= 7; ranks++) {
            for (long seed = 0; seed < 6; seed++) {
                Chunks chunks = PlanCases.randomChunks(1000 * ranks + seed, ranks);
                for (int lanes = 1; lanes <= Math.max(5, 2 * ranks); lanes += 1 + lanes / 4) {
                    checkAll(chunks, lanes, 1000 * ranks + seed);
                }
            }
        }
    }

    @Test
    void manyNumbersOfRanksUpTo64() {
        for (int ranks = 1; ranks <= 64; ranks += ranks < 20 ? 1 : 11) {
            for (long seed = 0; seed < 2; seed++) {
                long caseSeed = 1_000_000 + 1000 * ranks + seed;
                int lanes = 1 + new Random(caseSeed).nextInt(seed == 0 ? 2 * ranks : 5);
                checkAll(PlanCases.randomChunks(caseSeed, ranks), lanes, caseSeed);
            }
        }
    }

    @Test
    void everyShardOnOneRankOrNowhere() {
        for (int ranks = 1; ranks <= 12; ranks++) {
            for (int owner = -1; owner < ranks; owner++) {
                long[] rows = new long[ranks];
                if (owner >= 0) {
                    rows[owner] = 37;
                }
                Chunks chunks = Chunks.byRows(Shards.of(rows), 9, 3, 7);
                checkAll(chunks, 1 + ranks % 5, ranks);
                checkAll(chunks.withChunkCols(2), ranks, ranks);
            }
        }
    }

    @Test
    void sixtyFourRanksOfEightChunks() {
        Chunks chunks = Chunks.bySplits(Shards.even(64 * 8 * 2, 64), 32, 8, 8);
        checkAll(chunks, 2, 0);
    }

    @Test
    void theSameArgumentsGiveTheSamePlan() {
        Chunks chunks = PlanCases.randomChunks(5, 6);
        Chunks again = PlanCases.randomChunks(5, 6);
        for (Algorithm algorithm : PlanCases.algorithms()) {
            assertEquals(
                    PlanCases.plans(algorithm, chunks, 3), PlanCases.plans(algorithm, again, 3));
        }
        assertEquals(
                PlanCases.plans(Algorithm.pingPongRing(), chunks, 2),
                PlanCases.plans(Algorithm.pingPongRing(), again, 2));
    }

    @Test
    void pingPongRingsOfAnyLanesAreFreeOfDeadlock() {
        for (int ranks = 2; ranks <= 6; ranks++) {
            for (int lanes = 1; lanes <= 4; lanes++) {
                long[] uneven = new long[ranks];
                Arrays.setAll(uneven, r -> (5 * r + 3) % 8);
                for (Shards shards : List.of(Shards.even(7L * ranks, ranks), Shards.of(uneven))) {
                    Chunks chunks = Chunks.byRows(shards, 4, 1, 1);
                    checkAll(chunks, lanes, ranks);
                }
            }
        }
    }

    private static void checkAll(Chunks chunks, int lanes, long seed) {
        checkAll(chunks, lanes, Hosts.one(chunks.shards().ranks()), seed);
    }

    /** Every algorithm, and the ring that keeps no gathered A. */
    static void checkAll(Chunks chunks, int lanes, Hosts hosts, long seed) {
        for (Algorithm algorithm : PlanCases.algorithms()) {
            if (algorithm != Algorithm.DIRECT || hosts.count() == 1) {
                check(algorithm, algorithm, chunks, lanes, hosts, seed);
                int expected = Planner.lanes(algorithm, hosts, lanes);
                assertEquals(expected, Planner.lanes(algorithm, hosts, Math.max(1, expected)));
                assertEquals(
                        expected,
                        PlanCases.plan(algorithm, chunks, lanes, 0, hosts).lanes().size(),
                        algorithm.label() + ", seed " + seed);
            }
        }
        check(Algorithm.RING, Algorithm.pingPongRing(), chunks, lanes, hosts, seed);
    }

    static void check(
            Algorithm algorithm,
            GatherWriter writer,
            Chunks chunks,
            int lanes,
            Hosts hosts,
            long seed) {
        try {
            AlgorithmCheck.check(algorithm, writer, chunks, lanes, hosts);
        } catch (IllegalArgumentException fault) {
            fail(
                    "seed %d, %s, %d lanes, hosts %s, %s"
                            .formatted(seed, writer, lanes, hosts, chunks),
                    fault);
        }
    }

    /** What the check of links is worth. */
    @Test
    void aMeshOverloadsTheLinksOfARing() {
        Chunks chunks = Chunks.byRows(Shards.of(2, 2, 2, 2), 3, 1, 1);
        IllegalArgumentException fault =
                assertThrows(
                        IllegalArgumentException.class,
                        () ->
                                AlgorithmCheck.check(
                                        Algorithm.RING,
                                        Algorithm.MESH_PUSH,
                                        chunks,
                                        1,
                                        Hosts.one(4)));
        assertTrue(fault.getMessage().contains("overloads the link"), fault.getMessage());
    }

    /** What the checks of hosts are worth: a flat ring crosses the network too often. */
    @Test
    void aFlatRingIsNoRingOfHosts() {
        Chunks chunks = Chunks.byRows(Shards.of(2, 2, 2, 2), 3, 1, 1);
        List<GatherView> flat = GatherView.of(PlanCases.plans(Algorithm.RING, chunks, 1), chunks);
        IllegalArgumentException fault =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> HostCheck.check(flat, Hosts.of(2, 2)));
        assertTrue(fault.getMessage().contains("crosses the network"), fault.getMessage());
    }
}
