package dev.weft.model;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class WordTest {

    private static Word word(int initial) {
        return new Word(Word.Role.SIGNAL, "flag", initial);
    }

    @Test
    void aValueStandsFromItsStepOn() {
        Word word = word(7);
        word.raise(1, 3, 8);
        word.raise(1, 5, 9);
        assertEquals(7, word.value(new int[] {9, 2}));
        assertEquals(8, word.value(new int[] {0, 3}));
        assertEquals(8, word.value(new int[] {0, 4}));
        assertEquals(9, word.value(new int[] {0, 6}));
    }

    @Test
    void numbersWrapRound() {
        Word word = word(Integer.MAX_VALUE);
        word.raise(0, 1, Integer.MIN_VALUE);
        assertTrue(word.reached(new int[] {1}, Integer.MAX_VALUE));
        assertFalse(word.reached(new int[] {0}, Integer.MIN_VALUE));
    }

    @Test
    void aSecondWriterIsRefused() {
        Word word = word(0);
        word.raise(0, 1, 1);
        IllegalStateException refused =
                assertThrows(IllegalStateException.class, () -> word.raise(1, 1, 2));
        assertEquals("flag is written by thread 0 and by thread 1", refused.getMessage());
    }

    @Test
    void aWordDoesNotFall() {
        Word word = word(2);
        IllegalStateException refused =
                assertThrows(IllegalStateException.class, () -> word.raise(0, 1, 1));
        assertEquals("flag falls from 2 to 1", refused.getMessage());
    }
}
