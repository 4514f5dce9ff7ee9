package dev.weft.fabric;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

class MpiLetterTest {

    private final Arena arena = Arena.ofAuto();
    private final MpiLetter letter = new MpiLetter(arena, MpiLetter.MAX_BYTES);

    private MemoryRegion region(long key) {
        MemorySegment[] whole = {arena.allocate(2 * MemoryRegion.HEADER_BYTES)};
        return new MemoryRegion(key, 0, 1, whole, () -> {});
    }

    private MpiLetter received() {
        MpiLetter copy = new MpiLetter(arena, MpiLetter.BYTES);
        copy.copyFrom(letter);
        return copy;
    }

    @Test
    void aWordArrivesAsItWasSent() {
        letter.word(MpiLetter.WORD, -5, 1L << 40, Integer.MIN_VALUE);
        MpiLetter seen = received();
        assertEquals(MpiLetter.WORD, seen.kind());
        assertEquals(-5, seen.key());
        assertEquals(1L << 40, seen.at());
        assertEquals(Integer.MIN_VALUE, seen.value());
        assertEquals(MpiLetter.BYTES, letter.length());
        assertFalse(letter.isPutFrom(-5));
    }

    @Test
    void theAnswerToAGetIsItsPut() {
        Move move = new Move(region(9), 1, 1L << 33, 200, 0, 1L << 34, 300, 7, 100, 64, 128);
        letter.rectangle(MpiLetter.GET, move, 41, 42, 3, 17);
        assertFalse(letter.isPutFrom(9));
        MpiLetter put = new MpiLetter(arena, MpiLetter.MAX_BYTES);
        put.answer(received());
        assertTrue(put.isPutFrom(9));
        assertFalse(put.isPutFrom(8));
        assertEquals(1L << 33, put.wide(), "where it lies at the sender");
        assertEquals(1L << 34, put.at(), "where it lands");
        assertEquals(41, put.value());
        assertEquals(64, put.flagAt());
        assertEquals(42, put.counter());
        assertEquals(128, put.counterAt());
        assertEquals(3, put.courierId());
        assertEquals(17, put.index());
        assertEquals(7, put.rows());
        assertEquals(100, put.rowBytes());
        assertEquals(200, put.fromPitch());
        assertEquals(300, put.toPitch());
        assertEquals(MpiLetter.BYTES, put.length());
    }

    @Test
    void aFailureKeepsWhatFitsOfItsMessage() {
        letter.failure(6, "the press broke \u00e9");
        assertEquals(MpiLetter.FAILED, letter.kind());
        assertEquals(6, letter.value());
        assertEquals("the press broke \u00e9", letter.message(letter.length()));
        letter.failure(6, "x".repeat(5000));
        assertEquals(MpiLetter.MAX_BYTES, letter.length());
        assertEquals(
                "x".repeat(MpiLetter.MAX_BYTES - MpiLetter.BYTES), letter.message(letter.length()));
        assertEquals("", letter.message(10), "less than a letter has none");
    }

    @Test
    void aLetterUsedAgainForgetsItsRectangle() {
        letter.pieces = MpiPieces.of(1, 10, 10, 10, 5);
        letter.word(MpiLetter.LEFT, 0, 0, 0);
        assertNull(letter.pieces);
        assertNull(letter.courier);
    }
}
