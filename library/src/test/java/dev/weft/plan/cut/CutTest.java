package dev.weft.plan.cut;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Chunks;
import dev.weft.plan.Shards;
import org.junit.jupiter.api.Test;

class CutTest {

    private static final Shards SHARDS = Shards.of(1000, 0, 40);

    private static Chunks chunks(Cut cut) {
        return cut.chunks(SHARDS, 64, 8, 96);
    }

    @Test
    void rowsAndSplitsAreTaken() {
        assertEquals(Chunks.byRows(SHARDS, 64, 7, 96), chunks(new Cut(7, 0, 0)));
        assertEquals(Chunks.bySplits(SHARDS, 64, 3, 96), chunks(new Cut(0, 3, 0)));
        assertEquals(Chunks.bySplits(SHARDS, 64, 3, 96).withChunkCols(5), chunks(new Cut(0, 3, 5)));
    }

    @Test
    void whatIsNotGivenIsLeftToWeft() {
        assertEquals(Chunks.automatic(SHARDS, 64, 8, 96), chunks(new Cut(0, 0, 0)));
        assertFalse(new Cut(0, 0, 5).givesRows());
        assertTrue(new Cut(0, 3, 0).givesRows());
    }

    @Test
    void rowsAndSplitsTogetherAreRefusedWithTheirValues() {
        IllegalArgumentException refusal =
                assertThrows(IllegalArgumentException.class, () -> new Cut(7, 3, 0));
        assertEquals(
                "chunk rows 7 and splits per rank 3: give one of the two", refusal.getMessage());
    }

    @Test
    void blocksAreWholeQuantaThatGoRound() {
        assertEquals(500, Cut.blockRows(SHARDS, 2, 10, 600));
        assertEquals(340, Cut.blockRows(SHARDS, 3, 10, 600));
        assertEquals(300, Cut.blockRows(SHARDS, 2, 10, 300));
        assertEquals(10, Cut.blockRows(Shards.of(0, 0), 2, 10, 300));
    }
}
