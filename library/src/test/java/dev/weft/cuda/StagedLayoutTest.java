package dev.weft.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Region;
import dev.weft.plan.Chunks;
import dev.weft.plan.Shards;
import dev.weft.plan.Transfer;
import dev.weft.tensor.DType;
import org.junit.jupiter.api.Test;

/** Nothing overlaps, and both ends of a move mean the same rows. */
class StagedLayoutTest {

    private static final Shards SHARDS = Shards.of(300, 0, 1000, 1);

    private static StagedLayout layout(long k, long chunkRows, long chunkCols) {
        Chunks chunks = Chunks.byRows(SHARDS, k, chunkRows, chunkRows).withChunkCols(chunkCols);
        return new StagedLayout(chunks, DType.FP16);
    }

    private static Transfer transfer(StagedLayout layout, int from, int to, int source, int chunk) {
        int tag = layout.chunks().tag(source, chunk);
        return new Transfer(from, to, source, chunk, tag, Transfer.Initiator.SENDER, source, 0);
    }

    @Test
    void wordsFlagsAndSlotsFollowEachOtherOnPages() {
        for (long chunkRows : new long[] {1, 7, 256}) {
            StagedLayout layout = layout(77, chunkRows, 77);
            assertTrue(StagedLayout.STAGED_AT + 4 <= layout.flagAt(0));
            assertTrue(StagedLayout.STAGED_AT + 4 <= Region.WORDS_BYTES);
            assertTrue(layout.flagAt(layout.chunks().total()) <= layout.rowsAt());
            for (int r = 0; r < SHARDS.ranks(); r++) {
                long pitch = layout.pitchBytes();
                long shard = SHARDS.rows(r) * pitch;
                long all = SHARDS.totalRows() * pitch;
                assertEquals(layout.rowsAt(), layout.shardAt(r, 0));
                assertTrue(layout.shardAt(r, 0) + shard <= layout.shardAt(r, 1));
                assertTrue(layout.shardAt(r, 1) + shard <= layout.landingAt(r, 0));
                assertTrue(layout.landingAt(r, 0) + all <= layout.landingAt(r, 1));
                assertTrue(layout.landingAt(r, 1) + all <= layout.bytes(r));
                assertEquals(0, layout.rowsAt() % 4096);
                assertEquals(0, layout.bytes(r) % 4096);
            }
        }
    }

    @Test
    void wholeRowsTravelWithTheirPadding() {
        StagedLayout layout = layout(77, 256, 77);
        // 77 elements of 2 bytes, on 16 bytes.
        assertEquals(160, layout.pitchBytes());
        Move move = layout.move(null, transfer(layout, 2, 0, 2, 1), 1);
        assertEquals(layout.shardAt(2, 1) + 256 * 160, move.fromAt());
        assertEquals(layout.landingAt(0, 1) + (300 + 256) * 160, move.toAt());
        assertEquals(160, move.rowBytes());
        assertEquals(256, move.rows());
        assertEquals(layout.flagAt(layout.chunks().tag(2, 1)), move.flagAt());
        assertEquals(-1, move.counterAt());
    }

    @Test
    void forwardsComeFromWhereTheChunkLanded() {
        StagedLayout layout = layout(77, 256, 77);
        Move move = layout.move(null, transfer(layout, 0, 3, 2, 3), 0);
        assertEquals(layout.landingAt(0, 0) + (300 + 768) * 160, move.fromAt());
        assertEquals(layout.landingAt(3, 0) + (300 + 768) * 160, move.toAt());
        assertEquals(1000 - 768, move.rows());
    }

    @Test
    void partsOfRowsTravelAlone() {
        StagedLayout layout = layout(100, 300, 64);
        Move move = layout.move(null, transfer(layout, 0, 1, 0, 1), 0);
        assertEquals(layout.shardAt(0, 0) + 128, move.fromAt());
        assertEquals(36 * 2, move.rowBytes());
        assertEquals(208, move.fromPitch());
        assertEquals(208, move.toPitch());
    }

    @Test
    void theStagedWordGrowsOverAllCallsAndRoundTheRange() {
        StagedLayout layout = layout(64, 256, 64);
        int chunks = layout.chunks().count(2);
        assertEquals(4, chunks);
        int before = layout.staged(1, 2, 0) - 1;
        assertEquals(0, before);
        for (int call : new int[] {1, 2, 3, 536_870_912, 536_870_913, Integer.MAX_VALUE}) {
            for (int chunk = 1; chunk < chunks; chunk++) {
                int step = layout.staged(call, 2, chunk) - layout.staged(call, 2, chunk - 1);
                assertEquals(1, step);
            }
            int next = layout.staged(call + 1, 2, 0) - layout.staged(call, 2, chunks - 1);
            assertEquals(1, next, "after call " + call);
        }
        assertEquals(0, layout.staged(5, 1, -1), "an empty shard is always there");
    }
}
