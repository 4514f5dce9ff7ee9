package dev.weft.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;

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
                checkAll(chunks, 1 + cuts % 9, hosts, seed);
                checkAll(chunks, 1 + ranks % 4, hosts, seed);
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
        for (long seed = 0; seed < 20; seed++) {
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
        Chunks chunks = Chunks.bySplits(Shards.even(64 * 4 * 2, 64), 32, 4, 8);
        checkAll(chunks, 4, Hosts.of(8, 8, 8, 8, 8, 8, 8, 8), 0);
    }

    @Test
    void oneRankEachIsFlat() {
        for (long seed = 0; seed < 60; seed++) {
            int ranks = 1 + (int) seed % 9;
            Chunks chunks = PlanCases.randomChunks(seed, ranks);
            int lanes = 1 + (int) seed % 7;
            for (Algorithm algorithm : PlanCases.algorithms()) {
                if (algorithm != Algorithm.DIRECT) {
                    for (int rank = 0; rank < ranks; rank++) {
                        GatherView flat = PlanCases.plan(algorithm, chunks, lanes, rank);
                        GatherView apart =
                                PlanCases.plan(algorithm, chunks, lanes, rank, Hosts.apart(ranks));
                        assertEquals(flat.lanes(), apart.lanes(), "seed " + seed);
                        assertEquals(flat.consumption(), apart.consumption(), "seed " + seed);
                    }
                }
            }
        }
    }

    private static void checkAll(Chunks chunks, int lanes, Hosts hosts, long seed) {
        PlanPropertyTest.checkAll(chunks, Math.max(1, lanes), hosts, seed);
    }
}
