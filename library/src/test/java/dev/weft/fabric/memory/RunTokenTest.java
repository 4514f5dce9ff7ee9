package dev.weft.fabric.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RunTokenTest {

    @Test
    void aTokenSurvivesTextAndMemory() {
        RunToken token = RunToken.random();
        assertTrue(token.isSet());
        assertNotEquals(token, RunToken.random());
        assertTrue(token.hex().matches("[0-9a-f]{32}"));
        assertEquals(token, RunToken.parse(token.hex()));
        RunToken small = new RunToken(1, -2);
        assertEquals("0000000000000001fffffffffffffffe", small.hex());
        assertEquals(small, RunToken.parse(small.hex()));
        assertEquals(RunToken.NONE, RunToken.parse(null));
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment block = arena.allocate(64);
            assertEquals(RunToken.NONE, RunToken.read(block, 16));
            token.write(block, 16);
            assertEquals(token, RunToken.read(block, 16));
            assertEquals(0, block.get(java.lang.foreign.ValueLayout.JAVA_LONG, 32));
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "secret",
                "0000000000000001fffffffffffffff",
                "0000000000000001fffffffffffffffe0",
                "-000000000000001fffffffffffffffe",
                "0000000000000001+ffffffffffffffe",
                "0000000000000001fffffffffffffffg"
            })
    void whatIsNoTokenIsRefusedAndNotShown(String text) {
        String message =
                assertThrows(IllegalArgumentException.class, () -> RunToken.parse(text))
                        .getMessage();
        assertEquals(
                "environment variable WEFT_TOKEN has "
                        + text.length()
                        + " characters: expected the 32 hexadecimal digits that a starter sets",
                message);
    }

    @Test
    void itIsNotPrinted() {
        RunToken token = RunToken.random();
        assertEquals("a token", token.toString());
        assertEquals("no token", RunToken.NONE.toString());
        assertFalse(("" + token).contains(token.hex()));
    }
}
