package dev.weft.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

class ShardsTest {

    @Test
    void unevenShardsFollowEachOther() {
        Shards shards = Shards.of(3, 0, 5);
        assertEquals(3, shards.ranks());
        assertEquals(8, shards.totalRows());
        assertEquals(5, shards.maxRows());
        assertEquals(0, shards.rows(1));
        assertEquals(3, shards.firstRow(1));
        assertEquals(3, shards.firstRow(2));
        assertEquals("3,0,5", shards.toString());
    }

    @Test
    void evenShardsGiveTheExtraRowsToTheFirstRanks() {
        assertEquals(Shards.of(3, 3, 2, 2), Shards.even(10, 4));
        assertEquals(Shards.of(1, 0, 0), Shards.even(1, 3));
        assertEquals(Shards.of(0, 0), Shards.even(0, 2));
    }

    @Test
    void keepsItsOwnCopyOfTheSizes() {
        long[] rows = {1, 2};
        Shards shards = Shards.of(rows);
        rows[0] = 9;
        assertEquals(1, shards.rows(0));
    }

    @Test
    void equalShardsAreEqual() {
        assertEquals(Shards.of(2, 2).hashCode(), Shards.even(4, 2).hashCode());
        assertNotEquals(Shards.of(2, 2), Shards.of(1, 3));
        assertNotEquals(Shards.of(4), Shards.of(4, 0));
    }

    @Test
    void refusesWhatIsNoShard() {
        assertThrows(IllegalArgumentException.class, Shards::of);
        var negative = assertThrows(IllegalArgumentException.class, () -> Shards.of(1, -2));
        assertTrue(negative.getMessage().contains("rank 1 has -2 rows"), negative.getMessage());
        assertThrows(IllegalArgumentException.class, () -> Shards.even(4, 0));
        assertThrows(IllegalArgumentException.class, () -> Shards.even(-1, 2));
        assertThrows(ArithmeticException.class, () -> Shards.of(Long.MAX_VALUE, 1));
    }

    /** A program with more ranks than shards asks for such ranks. */
    @Test
    void aRankWithoutAShardIsNamed() {
        Shards shards = Shards.even(64, 8);
        Chunks chunks = Chunks.byRows(shards, 4, 2, 2);
        for (Executable call :
                new Executable[] {
                    () -> shards.rows(8),
                    () -> shards.firstRow(8),
                    () -> chunks.count(8),
                    () -> chunks.chunkRows(8),
                    () -> chunks.tag(8, 0)
                }) {
            var refused = assertThrows(IllegalArgumentException.class, call);
            assertEquals("rank 8 of 8 shards: expected 0 to 7", refused.getMessage());
        }
    }
}
