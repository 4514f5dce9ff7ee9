package dev.weft.cli.options;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.weft.cli.console.UsageException;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class NumberListTest {

    @Test
    void numbersListsAndRangesThatDouble() {
        assertEquals(List.of(7L), NumberList.parse("--gm", "7", 1, 100));
        assertEquals(List.of(5L, 3L), NumberList.parse("--gm", "5, 3,5", 1, 100));
        assertEquals(List.of(4L, 8L, 16L), NumberList.parse("--gm", "4..16", 1, 100));
        assertEquals(List.of(3L, 6L, 12L, 1L), NumberList.parse("--gm", "3..20,1", 1, 100));
        assertEquals(List.of(0L), NumberList.parse("--gm", "0", 0, 100));
        assertEquals(List.of(2, 4), NumberList.parseInts("-n", "2..4", 1, 100));
        assertEquals(
                60, NumberList.parse("--gm", "1..999999999999999999", 1, Long.MAX_VALUE).size());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"", ",", "1,", "x", "-1", "1..", "..2", "0", "101", "8..4", "0..8", "1.5"})
    void everythingElseIsRefusedByName(String text) {
        UsageException refusal =
                assertThrows(UsageException.class, () -> NumberList.parse("--gm", text, 1, 100));
        assertEquals(
                "--gm '"
                        + text
                        + "': expected numbers from 1 to 100 such as 1024,4096 or 1024..16384,"
                        + " which doubles",
                refusal.getMessage());
    }
}
