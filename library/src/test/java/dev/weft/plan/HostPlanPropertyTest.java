package dev.weft.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.HashSet;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Whatever the planner writes for ranks on hosts, the checker accepts. */
class HostPlanPropertyTest {

    @Test
    void fewRanksOnEveryArrangementOfHosts() {
        for (int ranks = 1; ranks <= 7; ranks++) {
            // A set bit ends a host after its rank.
            for (int cuts = 0; cuts < 1 << (ranks - 1); cuts++) {
                Hosts hosts = arrangement(ranks, cuts);
                long seed = 1000 * ranks + cuts;
                Chunks chunks = PlanCases.randomChunks(seed, ranks);
                for (int lanes = 1; lanes <= 9; lanes++) {
                    checkAll(chunks, lanes, hosts, seed);
                }
            }
        }
    }

    private static Hosts arrangement(int ranks, int cuts) {
        int[] sizes = new int[Integer.bitCount(cuts) + 1];
        int host = 0;
        for (int rank = 0; rank < ranks; rank++) {
            sizes[host]++;
            host += cuts >> rank & 1;
        }
        return Hosts.of(sizes);
    }

    @Test
    void randomHosts() {
        for (long seed = 0; seed < 150; seed++) {
            Random random = new Random(seed);
            Hosts hosts = PlanCases.randomHosts(random, 2 + random.nextInt(7), 6);
            int lanes = 1 + random.nextInt(random.nextInt(4) == 0 ? 30 : 6);
            checkAll(PlanCases.randomChunks(seed, hosts.ranks()), lanes, hosts, seed);
        }
    }

    @Test
    void everyShardOnOneRankOrNowhere() {
        Hosts hosts = Hosts.of(3, 1, 2, 4);
        for (int owner = -1; owner < hosts.ranks(); owner++) {
            long[] rows = new long[hosts.ranks()];
            if (owner >= 0) {
                rows[owner] = 37;
            }
            checkAll(Chunks.byRows(Shards.of(rows), 9, 3, 7), 1 + owner % 5, hosts, owner);
        }
    }

    @Test
    void sixtyFourRanksInNodesOfEight() {
        Chunks chunks = Chunks.bySplits(Shards.even(64 * 64 * 2, 64), 32, 64, 8);
        checkAll(chunks, 4, Hosts.of(8, 8, 8, 8, 8, 8, 8, 8), 0);
    }

    @Test
    void arrivalsAreWhatTheLanesOfAllRanksDeliver() {
        for (long seed = 0; seed < 60; seed++) {
            Random random = new Random(seed);
            Hosts hosts = PlanCases.randomHosts(random, 2 + random.nextInt(4), 4);
            Chunks chunks = PlanCases.randomChunks(seed, hosts.ranks());
            for (Algorithm algorithm : PlanCases.hierarchicalAlgorithms()) {
                int lanes = 1 + (int) seed % 9;
                List<RankPlan> plans = PlanCases.plans(algorithm, chunks, lanes, hosts);
                List<RankPlan> derived = PlanEdits.matchArrivals(plans);
                for (int rank = 0; rank < plans.size(); rank++) {
                    assertEquals(
                            new HashSet<>(derived.get(rank).arrivals()),
                            new HashSet<>(plans.get(rank).arrivals()),
                            name(seed, algorithm, lanes, hosts) + ", rank " + rank);
                }
            }
        }
    }

    @Test
    void oneHostOrOneRankEachIsFlat() {
        for (long seed = 0; seed < 60; seed++) {
            int ranks = 1 + (int) seed % 9;
            Chunks chunks = PlanCases.randomChunks(seed, ranks);
            int lanes = 1 + (int) seed % 7;
            for (Algorithm algorithm : PlanCases.algorithms()) {
                List<RankPlan> flat = PlanCases.plans(algorithm, chunks, lanes);
                Hosts one = Hosts.one(ranks);
                assertEquals(flat, PlanCases.plans(algorithm, chunks, lanes, one), "seed " + seed);
                if (algorithm != Algorithm.DIRECT) {
                    Hosts apart = Hosts.apart(ranks);
                    String name = name(seed, algorithm, lanes, apart);
                    assertEquals(
                            flat,
                            PlanCases.plans(algorithm, chunks, lanes, apart).stream()
                                    .map(p -> p.with(p.name(), flat.getFirst().pacing()))
                                    .toList(),
                            name);
                    PlanPropertyTest.accepts(
                            () -> AlgorithmCheck.check(algorithm, flat, apart), name);
                }
            }
        }
    }

    private static void checkAll(Chunks chunks, int requested, Hosts hosts, long seed) {
        int lanes = Math.max(1, requested);
        for (Algorithm algorithm : PlanCases.algorithms()) {
            if (algorithm == Algorithm.DIRECT && hosts.count() > 1) {
                continue;
            }
            String name = name(seed, algorithm, lanes, hosts);
            List<RankPlan> plans = PlanCases.plans(algorithm, chunks, lanes, hosts);
            PlanPropertyTest.accepts(
                    () -> AlgorithmCheck.check(algorithm, plans, hosts), name + ", " + chunks);
            int expected = Planner.lanes(algorithm, hosts, lanes);
            plans.forEach(plan -> assertEquals(expected, plan.lanes().size(), name));
            assertEquals(expected, Planner.lanes(algorithm, hosts, Math.max(1, expected)), name);
        }
        List<RankPlan> pingPong = PlanCases.pingPongPlans(chunks);
        PlanPropertyTest.accepts(
                () -> AlgorithmCheck.check(Algorithm.RING, pingPong, hosts),
                "seed " + seed + ", ping-pong ring, " + chunks);
    }

    private static String name(long seed, Algorithm algorithm, int lanes, Hosts hosts) {
        return "seed " + seed + ", " + algorithm.label() + ", " + lanes + " lanes, hosts " + hosts;
    }
}
