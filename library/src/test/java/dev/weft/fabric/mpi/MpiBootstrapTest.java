package dev.weft.fabric.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import org.junit.jupiter.api.Test;

class MpiBootstrapTest {

    private static String hosts(int most, long... leaders) {
        return MpiBootstrap.hosts(leaders, most).toString();
    }

    @Test
    void consecutiveRanksWithTheSameLeaderShareAHost() {
        assertEquals("1", hosts(0, 0));
        assertEquals("3", hosts(0, 0, 0, 0));
        assertEquals("2+3+1", hosts(0, 0, 0, 2, 2, 2, 5));
    }

    @Test
    void ranksDealtToHostsInTurnAreEachOnTheirOwn() {
        assertEquals("1+1+1+1", hosts(0, 0, 1, 0, 1));
        assertEquals("2+1+1", hosts(0, 0, 0, 2, 0));
    }

    @Test
    void ranksOfOneBuildAreNoStrangers() {
        assertNull(MpiBootstrap.buildMismatch(new long[] {2}, new long[] {7}));
        assertNull(MpiBootstrap.buildMismatch(new long[] {2, 2, 2}, new long[] {7, 7, 7}));
    }

    @Test
    void aRankOfAnotherBuildIsNamedWithBoth() {
        assertEquals(
                "rank 2 is of build 0000000000000009 with layout version 2, rank 0 of build"
                        + " 0000000000000007 with 2: expected one and the same Weft on all hosts",
                MpiBootstrap.buildMismatch(new long[] {2, 2, 2}, new long[] {7, 7, 9}));
        assertEquals(
                "rank 1 is of build 0000000000000007 with layout version 3, rank 0 of build"
                        + " 0000000000000007 with 2: expected one and the same Weft on all hosts",
                MpiBootstrap.buildMismatch(new long[] {2, 3, 3}, new long[] {7, 7, 9}));
    }

    @Test
    void hostsCanOnlyBeMadeSmaller() {
        assertEquals("2+2+1", hosts(2, 0, 0, 0, 0, 0));
        assertEquals("2+1+2", hosts(2, 0, 0, 0, 3, 3));
        assertEquals("2+3", hosts(4, 0, 0, 2, 2, 2));
        assertEquals("1+1+1", hosts(1, 0, 0, 0));
    }
}
