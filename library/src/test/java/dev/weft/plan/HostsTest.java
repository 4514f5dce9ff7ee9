package dev.weft.plan;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class HostsTest {

    private static final Hosts HOSTS = Hosts.of(3, 1, 2);

    @Test
    void ranksOfAHostAreConsecutive() {
        assertEquals(3, HOSTS.count());
        assertEquals(6, HOSTS.ranks());
        assertEquals(List.of(3, 1, 2), HOSTS.sizes());
        assertEquals(2, HOSTS.size(2));
        assertEquals(4, HOSTS.first(2));
        assertEquals("3+1+2", HOSTS.toString());
        int[] hosts = {0, 0, 0, 1, 2, 2};
        for (int rank = 0; rank < hosts.length; rank++) {
            assertEquals(hosts[rank], HOSTS.hostOf(rank));
        }
        assertTrue(HOSTS.shareMemory(0, 2));
        assertFalse(HOSTS.shareMemory(2, 3));
    }

    @Test
    void aShardEntersAtTheSamePlaceCountedRound() {
        assertEquals(0, HOSTS.gateway(4, 0));
        assertEquals(1, HOSTS.gateway(5, 0));
        assertEquals(3, HOSTS.gateway(2, 1));
        assertEquals(4, HOSTS.gateway(2, 2));
        assertEquals(2, HOSTS.gateway(2, 0));
        assertArrayEquals(new int[] {0, 2}, HOSTS.sources(4, 0));
        assertArrayEquals(new int[] {0, 1, 2}, HOSTS.sources(3, 0));
        assertArrayEquals(new int[0], HOSTS.sources(2, 2));
        assertArrayEquals(new int[] {5}, HOSTS.sources(5, 2));
    }

    @Test
    void sourcesAreThoseOfWhichARankIsTheGateway() {
        for (long seed = 0; seed < 100; seed++) {
            Random random = new Random(seed);
            Hosts hosts = PlanCases.randomHosts(random, 1 + random.nextInt(5), 6);
            for (int rank = 0; rank < hosts.ranks(); rank++) {
                for (int source = 0; source < hosts.ranks(); source++) {
                    int[] sources = hosts.sources(rank, hosts.hostOf(source));
                    int wanted = source;
                    assertEquals(
                            hosts.gateway(source, hosts.hostOf(rank)) == rank,
                            Arrays.stream(sources).anyMatch(s -> s == wanted),
                            "seed " + seed + ", hosts " + hosts);
                }
            }
        }
    }

    @Test
    void onlyAMixOfMemoryAndNetworkIsHierarchical() {
        assertTrue(Hosts.of(1, 2).isHierarchical());
        assertFalse(Hosts.one(4).isHierarchical());
        assertFalse(Hosts.apart(4).isHierarchical());
        assertFalse(Hosts.one(1).isHierarchical());
    }

    @Test
    void equalHostsAreEqual() {
        assertEquals(Hosts.apart(2), Hosts.of(1, 1));
        assertEquals(Hosts.apart(2).hashCode(), Hosts.of(1, 1).hashCode());
        assertNotEquals(Hosts.one(2), Hosts.apart(2));
    }

    @Test
    void refusesWhatIsNoHost() {
        refuses("hosts of [2, 0] ranks", () -> Hosts.of(2, 0));
        refuses("hosts of [] ranks", Hosts::of);
        refuses("hosts of [0] ranks", () -> Hosts.one(0));
        refuses("0 ranks", () -> Hosts.apart(0));
        refuses("-1 ranks", () -> Hosts.apart(-1));
    }

    private static void refuses(String message, Runnable call) {
        var refused = assertThrows(IllegalArgumentException.class, call::run);
        assertTrue(refused.getMessage().contains(message), refused.getMessage());
    }
}
