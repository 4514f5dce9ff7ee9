package dev.weft.fabric.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.memory.MemoryRegion;
import dev.weft.fabric.mpi.MpiMessage.Field;
import dev.weft.fabric.transport.Move;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import org.junit.jupiter.api.Test;

class MpiMessageTest {

    private final Arena arena = Arena.ofAuto();
    private final MpiMessage message = new MpiMessage(arena, MpiMessage.MAX_BYTES);

    private MemoryRegion region(long key) {
        MemorySegment[] whole = {arena.allocate(2 * MemoryRegion.HEADER_BYTES)};
        return new MemoryRegion(key, BitSet.valueOf(new long[] {1}), whole, () -> {});
    }

    private MpiMessage received() {
        MpiMessage copy = new MpiMessage(arena, MpiMessage.BYTES);
        copy.copyFrom(message);
        return copy;
    }

    @Test
    void aWordArrivesAsItWasSent() {
        message.set(MpiMessage.WORD, -5, 1L << 40, Integer.MIN_VALUE, 0);
        MpiMessage seen = received();
        assertEquals(MpiMessage.WORD, seen.kind());
        assertEquals(-5, seen.key());
        assertEquals(1L << 40, seen.get(Field.AT));
        assertEquals(Integer.MIN_VALUE, seen.number(Field.VALUE));
        assertEquals(MpiMessage.BYTES, message.length());
        assertFalse(message.isPutFrom(-5));
    }

    @Test
    void theAnswerToAGetIsItsPut() {
        Move move = new Move(region(9), 1, 1L << 33, 200, 0, 1L << 34, 300, 7, 100, 64, 128);
        message.rectangle(MpiMessage.GET, move, 41, 42, 3, 17);
        assertFalse(message.isPutFrom(9));
        MpiMessage put = new MpiMessage(arena, MpiMessage.MAX_BYTES);
        put.answer(received(), 4096);
        assertEquals(4096, put.address);
        assertEquals(1, put.fragmentCount());
        assertTrue(put.isPutFrom(9));
        assertFalse(put.isPutFrom(8));
        assertEquals(1L << 33, put.get(Field.WIDE), "where it lies at the sender");
        assertEquals(1L << 34, put.get(Field.AT), "where it lands");
        assertEquals(41, put.number(Field.VALUE));
        assertEquals(64, put.get(Field.FLAG_AT));
        assertEquals(42, put.number(Field.COUNTER));
        assertEquals(128, put.get(Field.COUNTER_AT));
        assertEquals(3, put.number(Field.MOVER));
        assertEquals(17, put.number(Field.INDEX));
        assertEquals(7, put.get(Field.ROWS));
        assertEquals(100, put.get(Field.ROW_BYTES));
        assertEquals(200, put.get(Field.FROM_PITCH));
        assertEquals(300, put.get(Field.TO_PITCH));
        assertEquals(MpiMessage.BYTES, put.length());
    }

    @Test
    void aFailureKeepsWhatFitsOfItsMessage() {
        message.failure(6, "the press broke \u00e9");
        assertEquals(MpiMessage.FAILED, message.kind());
        assertEquals(6, message.number(Field.VALUE));
        assertEquals("the press broke \u00e9", message.failureText(message.length()));
        message.failure(6, "x".repeat(5000));
        assertEquals(MpiMessage.MAX_BYTES, message.length());
        assertEquals(
                "x".repeat(MpiMessage.MAX_BYTES - MpiMessage.BYTES),
                message.failureText(message.length()));
        assertEquals("", message.failureText(10), "less than a message has none");
    }

    @Test
    void aLetterUsedAgainForgetsItsRectangle() {
        message.fragments = MpiFragments.of(1, 10, 10, 10, 5);
        message.set(MpiMessage.LEFT, 0, 0, 0, 0);
        assertNull(message.fragments);
        assertNull(message.mover);
    }
}
