package dev.weft.fabric.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

class GroupTest {

    private static final Group WORLD = Group.world(8);

    @Test
    void membersKeepTheOrderOfTheirList() {
        Group group = WORLD.of(List.of(6, 0, 3));
        assertEquals(3, group.size());
        assertEquals(6, group.worldRank(0));
        assertEquals(2, group.memberOf(3));
        Group part = group.of(List.of(2, 0));
        assertEquals(3, part.worldRank(0));
        assertEquals(1, part.memberOf(6));
    }

    @Test
    void onlyAllRanksInTheirOrderAreTheWorld() {
        assertTrue(WORLD.isWorld(8));
        assertFalse(WORLD.isWorld(9));
        assertFalse(Group.world(2).of(List.of(1, 0)).isWorld(2));
    }

    @Test
    void refusesRanksThatItDoesNotHave() {
        Group group = WORLD.of(List.of(4, 2));
        refuses("rank 3 is not in the group of ranks [4, 2]", () -> group.memberOf(3));
        refuses("rank 7 is not in the group of ranks [4, 2]", () -> group.memberOf(7));
        refuses("member 2 of a group of 2 ranks", () -> group.worldRank(2));
    }

    private static void refuses(String message, Runnable call) {
        var refused = assertThrows(IllegalArgumentException.class, call::run);
        assertTrue(refused.getMessage().contains(message), refused.getMessage());
    }
}
