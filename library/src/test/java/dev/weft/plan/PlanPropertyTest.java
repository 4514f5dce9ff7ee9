package dev.weft.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.fail;

import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Whatever the planner writes, the checker accepts. */
class PlanPropertyTest {

    @Test
    void smallGroupsWithEveryNumberOfLanes() {
        for (int ranks = 1; ranks <= 7; ranks++) {
            for (long seed = 0; seed < 25; seed++) {
                Chunks chunks = PlanCases.randomChunks(1000 * ranks + seed, ranks);
                for (int lanes = 1; lanes <= Math.max(5, 2 * ranks); lanes++) {
                    checkAll(chunks, lanes, 1000 * ranks + seed);
                }
            }
        }
    }

    @Test
    void everyNumberOfRanksUpTo64() {
        for (int ranks = 1; ranks <= 64; ranks++) {
            for (long seed = 0; seed < (ranks <= 24 ? 4 : 2); seed++) {
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
    void sixtyFourRanksOfSixtyFourChunks() {
        Chunks chunks = Chunks.bySplits(Shards.even(64 * 64 * 2, 64), 32, 64, 8);
        checkAll(chunks, 2, 0);
    }

    @Test
    void arrivalsAreWhatTheLanesOfAllRanksDeliver() {
        for (long seed = 0; seed < 60; seed++) {
            Chunks chunks = PlanCases.randomChunks(seed, 2 + (int) seed % 9);
            for (Algorithm algorithm : PlanCases.algorithms()) {
                List<RankPlan> plans = PlanCases.plans(algorithm, chunks, 1 + (int) seed % 7);
                List<RankPlan> derived = PlanEdits.matchArrivals(plans);
                for (int rank = 0; rank < plans.size(); rank++) {
                    assertEquals(
                            new HashSet<>(derived.get(rank).arrivals()),
                            new HashSet<>(plans.get(rank).arrivals()),
                            "seed " + seed + ", " + algorithm.label() + ", rank " + rank);
                }
            }
        }
    }

    @Test
    void theSameArgumentsGiveTheSamePlan() {
        Chunks chunks = PlanCases.randomChunks(5, 6);
        Chunks again = PlanCases.randomChunks(5, 6);
        for (Algorithm algorithm : PlanCases.algorithms()) {
            assertEquals(
                    PlanCases.plans(algorithm, chunks, 3), PlanCases.plans(algorithm, again, 3));
        }
        assertEquals(PlanCases.pingPongPlans(chunks), PlanCases.pingPongPlans(again));
    }

    @Test
    void pingPongRingsOfAnyLanesAreFreeOfDeadlock() {
        for (int ranks = 2; ranks <= 6; ranks++) {
            for (int lanes = 1; lanes <= 4; lanes++) {
                long[] uneven = new long[ranks];
                Arrays.setAll(uneven, r -> (5 * r + 3) % 8);
                for (Shards shards : List.of(Shards.even(7L * ranks, ranks), Shards.of(uneven))) {
                    Chunks chunks = Chunks.byRows(shards, 4, 1, 1);
                    List<RankPlan> plans = PlanCases.pingPongPlans(chunks, lanes);
                    int wanted = lanes;
                    plans.forEach(plan -> assertEquals(wanted, plan.lanes().size()));
                    accepts(
                            () -> AlgorithmCheck.check(Algorithm.RING, plans),
                            ranks + " ranks, " + lanes + " lanes, " + shards);
                }
            }
        }
    }

    private static void checkAll(Chunks chunks, int lanes, long seed) {
        int ranks = chunks.shards().ranks();
        for (Algorithm algorithm : PlanCases.algorithms()) {
            String name = "seed " + seed + ", " + algorithm.label() + ", " + lanes + " lanes";
            List<RankPlan> plans = PlanCases.plans(algorithm, chunks, lanes);
            accepts(() -> AlgorithmCheck.check(algorithm, plans), name + ", " + chunks);
            int expected = Planner.lanes(algorithm, Hosts.one(ranks), lanes);
            plans.forEach(plan -> assertEquals(expected, plan.lanes().size(), name));
        }
        List<RankPlan> pingPong = PlanCases.pingPongPlans(chunks, lanes);
        accepts(
                () -> AlgorithmCheck.check(Algorithm.RING, pingPong),
                "seed " + seed + ", ping-pong ring, " + lanes + " lanes, " + chunks);
    }

    static void accepts(Runnable check, String name) {
        try {
            check.run();
        } catch (PlanException fault) {
            fail(name, fault);
        }
    }
}
