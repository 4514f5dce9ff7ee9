package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class MainTest {

    @Test
    void aMessageBecomesOneLineThatATerminalOnlyShows() {
        assertEquals("one", Main.oneLine("one\ntwo"));
        assertEquals("two", Main.oneLine("\n  \r\ntwo"));
        assertEquals("a?b?c?d", Main.oneLine("a\u001bb\u009bc\u2028d"));
        assertEquals("a?b?c", Main.oneLine("a\u202eb\u2066c"));
        assertEquals("failed", Main.oneLine(""));
        assertEquals("x".repeat(900), Main.oneLine("x".repeat(900)));
        assertEquals("x".repeat(897) + "...", Main.oneLine("x".repeat(901)));
    }
}
