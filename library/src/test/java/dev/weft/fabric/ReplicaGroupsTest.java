package dev.weft.fabric;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ReplicaGroupsTest {

    @Test
    void listsOfRanksAreRead() {
        ReplicaGroups groups = ReplicaGroups.parse("0,2,4,6/ 1, 3 /7");
        assertEquals(List.of(List.of(0, 2, 4, 6), List.of(1, 3), List.of(7)), groups.groups());
        assertEquals(3, groups.count());
        assertEquals("0,2,4,6/1,3/7", groups.toString());
        assertEquals(groups, ReplicaGroups.parse(groups.toString()));
    }

    @Test
    void aRankKnowsItsGroupAndIsAloneWithoutOne() {
        ReplicaGroups groups = ReplicaGroups.parse("3,1/0");
        assertEquals(0, groups.groupOf(1));
        assertEquals(List.of(3, 1), groups.with(1));
        assertEquals(1, groups.groupOf(0));
        assertEquals(-1, groups.groupOf(2));
        assertEquals(List.of(2), groups.with(2));
    }

    @Test
    void consecutiveRanksFormBlocks() {
        assertEquals(ReplicaGroups.parse("0,1,2/3,4,5"), ReplicaGroups.consecutive(2, 3));
        assertEquals(ReplicaGroups.parse("0,1/2,3/4,5"), ReplicaGroups.equal(6, 3));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "0,1/1,2 | rank 1 is twice in replica groups 0,1/1,2: expected each rank once",
                "0,0 | rank 0 is twice in replica groups 0,0: expected each rank once",
                "0,-1 | rank -1 in replica groups 0,-1: expected zero or more",
                "0,1,5 | rank 5 in replica groups 0,1,5: expected ranks 0 to 3, which the world has"
            })
    void overlapsAndRanksThatAreNotThereAreRefused(String text, String message) {
        assertEquals(message, refusal(() -> ReplicaGroups.parse(text).in(4)));
    }

    @Test
    void aLongListIsNotRepeatedInFull() {
        String message = refusal(() -> ReplicaGroups.parse("9".repeat(5000)));
        assertTrue(message.length() < 300, message);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "/", "0,1/", "0,,1", "a", "0-3"})
    void textThatIsNoListOfRanksIsRefused(String text) {
        String message = refusal(() -> ReplicaGroups.parse(text));
        assertEquals("replica group \"", message.substring(0, 15));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "0,1/2,3|4|true",
                "0,1,2|3|true",
                "0,1/2,3|5|false",
                "0,2/1,3|4|false",
                "0,1/2|3|false",
                "0,1|4|false"
            })
    void equalGroupsAreOfConsecutiveRanksAndHaveThemAll(String text, int ranks, boolean equal) {
        assertEquals(equal, ReplicaGroups.parse(text).isEqual(ranks));
    }

    @Test
    void groupsWithoutRanksAreRefused() {
        assertEquals(
                "no replica groups: expected at least one",
                refusal(() -> new ReplicaGroups(List.of())));
        assertEquals(
                "replica group 1 of 2 has no ranks: expected at least one",
                refusal(() -> new ReplicaGroups(List.of(List.of(0), List.of()))));
        assertEquals(
                "8 ranks cannot form 3 equal groups: the number of groups must divide the ranks",
                refusal(() -> ReplicaGroups.equal(8, 3)));
        assertEquals(
                "8 ranks cannot form 0 equal groups: the number of groups must divide the ranks",
                refusal(() -> ReplicaGroups.equal(8, 0)));
        assertEquals(
                "2 replica groups of 0 ranks: expected at least one of each",
                refusal(() -> ReplicaGroups.consecutive(2, 0)));
    }

    private static String refusal(Runnable call) {
        return assertThrows(IllegalArgumentException.class, call::run).getMessage();
    }
}
