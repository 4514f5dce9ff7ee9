package dev.weft.model;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class WordTest {

    private static OwnedWord word(int initial) {
        return new OwnedWord(Word.Kind.FLAG, "flag", initial, 1);
    }

    @Test
    void aValueStandsFromItsStepOn() {
        OwnedWord word = word(7);
        word.raise(1, 3, 8);
        word.raise(1, 5, 9);
        assertEquals(7, word.value(new int[] {9, 2}));
        assertEquals(8, word.value(new int[] {0, 3}));
        assertEquals(8, word.value(new int[] {0, 4}));
        assertEquals(9, word.value(new int[] {0, 6}));
    }

    @Test
    void numbersWrapRound() {
        OwnedWord word = word(Integer.MAX_VALUE);
        word.raise(0, 1, Integer.MIN_VALUE);
        assertTrue(word.reached(new int[] {1}, Integer.MAX_VALUE));
        assertFalse(word.reached(new int[] {0}, Integer.MIN_VALUE));
    }

    @Test
    void aSecondWriterIsRefused() {
        OwnedWord word = word(0);
        word.raise(0, 1, 1);
        IllegalStateException refused =
                assertThrows(IllegalStateException.class, () -> word.raise(1, 1, 2));
        assertEquals("flag is written by thread 0 and by thread 1", refused.getMessage());
    }

    @Test
    void aWordDoesNotFall() {
        OwnedWord word = word(2);
        IllegalStateException refused =
                assertThrows(IllegalStateException.class, () -> word.raise(0, 1, 1));
        assertEquals("flag falls from 2 to 1", refused.getMessage());
    }

    /** Two remote shards a call: the first has two uses, by both threads, the second none. */
    @Test
    void releasesGoInOrderAndAnEmptyShardFollows() {
        ReleaseWord word = new ReleaseWord("release", 1, 2, 2, 0);
        word.begin(1, new int[] {2, 0});
        word.use(0, 2, 0);
        word.use(1, 1, 0);
        word.begin(3, new int[] {0, 1});
        word.use(1, 2, 1);
        assertEquals(0, word.value(new int[] {0, 0}));
        assertEquals(0, word.value(new int[] {1, 1}));
        assertEquals(0, word.value(new int[] {2, 0}));
        assertEquals(2, word.value(new int[] {2, 1}));
        assertEquals(3, word.value(new int[] {3, 1}));
        assertEquals(4, word.value(new int[] {3, 2}));
    }
}
