package dev.weft.fabric.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class GroupTest {

    @Test
    void theWorldIsOneGroup() {
        assertEquals(new Group(0, 6), Group.world(6));
        assertEquals(Group.world(6), Group.containing(5, 6, 1));
    }

    @Test
    void groupsAreConsecutiveRanks() {
        assertEquals(new Group(0, 4), Group.containing(3, 8, 2));
        assertEquals(new Group(4, 4), Group.containing(4, 8, 2));
        assertEquals(new Group(7, 1), Group.containing(7, 8, 8));
    }

    @Test
    void memberAndWorldRankAreInverse() {
        for (int worldRank = 0; worldRank < 12; worldRank++) {
            Group group = Group.containing(worldRank, 12, 3);
            assertEquals(worldRank, group.worldRank(group.memberOf(worldRank)));
            assertEquals(worldRank % 4, group.memberOf(worldRank));
        }
    }

    @Test
    void refusesWhatIsNoGroup() {
        refuses("8 ranks cannot form 3 equal groups", () -> Group.containing(0, 8, 3));
        refuses("8 ranks cannot form 0 equal groups", () -> Group.containing(0, 8, 0));
        refuses("rank 4 is not in the group of ranks 0 to 3", () -> new Group(0, 4).memberOf(4));
        refuses("member 4 of a group of 4", () -> new Group(4, 4).worldRank(4));
    }

    private static void refuses(String message, Runnable call) {
        var refused = assertThrows(IllegalArgumentException.class, call::run);
        assertTrue(refused.getMessage().contains(message), refused.getMessage());
    }
}
