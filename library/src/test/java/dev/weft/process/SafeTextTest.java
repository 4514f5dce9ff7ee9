package dev.weft.process;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class SafeTextTest {

    @Test
    void noCharacterDoesAnythingToATerminal() {
        assertEquals("a?[31mb?c?d?e\u00e4", SafeText.harmless("a\033[31mb\nc\u2028d\u202ee\u00e4"));
        assertEquals("?", SafeText.excerpt("\u009b"));
    }

    @Test
    void anExcerptIsShort() {
        assertEquals("x".repeat(60), SafeText.excerpt("x".repeat(60)));
        assertEquals("x".repeat(60) + "...", SafeText.excerpt("x".repeat(61)));
        assertEquals("", SafeText.excerpt(""));
    }
}
