package dev.weft.fabric;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class MpiMeetingTest {

    private static String hosts(int most, long... leaders) {
        return MpiMeeting.hosts(leaders, most).toString();
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
    void hostsCanOnlyBeMadeSmaller() {
        assertEquals("2+2+1", hosts(2, 0, 0, 0, 0, 0));
        assertEquals("2+1+2", hosts(2, 0, 0, 0, 3, 3));
        assertEquals("2+3", hosts(4, 0, 0, 2, 2, 2));
        assertEquals("1+1+1", hosts(1, 0, 0, 0));
    }
}
