package dev.weft.cli.console;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class ErrorMessageTest {

    @Test
    void aMessageBecomesOneLineThatATerminalOnlyShows() {
        assertEquals("one", ErrorMessage.oneLine("one\ntwo"));
        assertEquals("two", ErrorMessage.oneLine("\n  \r\ntwo"));
        assertEquals("a?b?c?d", ErrorMessage.oneLine("a\u001bb\u009bc\u2028d"));
        assertEquals("a?b?c", ErrorMessage.oneLine("a\u202eb\u2066c"));
        assertEquals("failed", ErrorMessage.oneLine(""));
        assertEquals("x".repeat(900), ErrorMessage.oneLine("x".repeat(900)));
        assertEquals("x".repeat(897) + "...", ErrorMessage.oneLine("x".repeat(901)));
    }
}
