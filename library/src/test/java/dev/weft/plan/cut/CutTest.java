package dev.weft.plan.cut;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Chunks;
import dev.weft.plan.Shards;
import java.util.List;
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

    private static int takers(long rows, int workers, long n, long mostRows) {
        return Cut.rowTakers(Shards.even(2 * rows, 2), workers, List.of(n), 8, mostRows);
    }

    @Test
    void workersShareRowsAsLongAsBlocksAreTall() {
        assertEquals(8, takers(2048, 8, 8192, 256));
        assertEquals(4, takers(2048, 8, 8192, 512));
        assertEquals(2, takers(2048, 8, 16384, 1024));
        assertEquals(3, takers(2048, 6, 8192, 512));
        assertEquals(7, takers(2048, 7, 8192, 512), "seven parts would be narrow");
        assertEquals(1, takers(64, 7, 8192, 512));
    }

    @Test
    void workersShareRowsWhereColumnsAreFew() {
        assertEquals(2, takers(256, 2, 1024, 256));
        assertEquals(1, takers(256, 2, 2048, 256));
        assertEquals(1, takers(64, 8, 8192, 256));
        assertEquals(2, takers(64, 8, 1024, 256));
        assertEquals(8, takers(64, 8, 32, 256));
        Shards shards = Shards.of(64, 0);
        assertEquals(2, Cut.rowTakers(shards, 8, List.of(2000L, 48L), 8, 256));
        assertEquals(8, Cut.rowTakers(shards, 8, List.of(), 8, 256));
    }

    @Test
    void columnsAreCutWhereBlocksAreFewerThanWorkers() {
        Chunks four = Chunks.byRows(Shards.even(400, 2), 64, 50, 50);
        List<Long> wide = List.of(8192L);
        assertEquals(1, Cut.columnParts(four, 1, 1, wide));
        assertEquals(1, Cut.columnParts(four, 1, 4, wide));
        assertEquals(2, Cut.columnParts(four, 1, 8, wide));
        assertEquals(2, Cut.columnParts(four, 1, 6, wide));
        assertEquals(5, Cut.columnParts(four, 1, 5, wide));
        assertEquals(2, Cut.columnParts(four, 2, 4, wide));
    }

    @Test
    void narrowPartsAreOnlyForWorkersThatWouldBeIdle() {
        Chunks one = Chunks.byRows(Shards.of(80, 80), 64, 80, 80);
        assertEquals(1, Cut.columnParts(one, 1, 2, List.of(300L)));
        assertEquals(2, Cut.columnParts(one, 1, 2, List.of(320L)));
        assertEquals(4, Cut.columnParts(one, 1, 8, List.of(300L)));
        assertEquals(8, Cut.columnParts(one, 1, 8, List.of(1280L)));
        assertEquals(2, Cut.columnParts(one, 1, 8, List.of(128L)));
        assertEquals(1, Cut.columnParts(one, 1, 8, List.of(127L)));
        assertEquals(1, Cut.columnParts(one, 1, 8, List.of()));
    }
}
