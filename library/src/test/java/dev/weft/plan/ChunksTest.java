package dev.weft.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Chunks.RowBlock;
import java.util.Random;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Test;

class ChunksTest {

    @Test
    void chunksTileEveryShard() {
        forRandomCases(
                (chunks, message) -> {
                    int tag = 0;
                    for (int source = 0; source < chunks.shards().ranks(); source++) {
                        assertChunksTile(chunks, source, message);
                        for (int index = 0; index < chunks.count(source); index++) {
                            assertEquals(tag++, chunks.tag(source, index), message);
                        }
                        assertEquals(tag, chunks.tag(source, chunks.count(source)), message);
                    }
                    assertEquals(tag, chunks.total(), message);
                });
    }

    private static void assertChunksTile(Chunks chunks, int source, String message) {
        long row = 0;
        long col = 0;
        for (int index = 0; index < chunks.count(source); index++) {
            Chunk chunk = chunks.chunk(source, index);
            assertEquals(source, chunk.source(), message);
            assertEquals(index, chunk.index(), message);
            assertEquals(row, chunk.firstRow(), message);
            assertEquals(col, chunk.firstCol(), message);
            assertTrue(chunk.rows() > 0 && chunk.rows() <= chunks.chunkRows(source), message);
            assertTrue(chunk.cols() > 0, message);
            col += chunk.cols();
            if (col == chunks.cols()) {
                col = 0;
                row += chunk.rows();
            }
        }
        assertEquals(0, col, message);
        assertEquals(chunks.shards().rows(source), row, message);
    }

    @Test
    void blocksTileEveryShardAndNameTheirChunks() {
        forRandomCases(
                (chunks, message) -> {
                    for (int source = 0; source < chunks.shards().ranks(); source++) {
                        long row = 0;
                        for (int index = 0; index < chunks.blocks(source); index++) {
                            RowBlock block = chunks.block(source, index);
                            assertEquals(source, block.source(), message);
                            assertEquals(row, block.firstRow(), message);
                            assertTrue(block.rows() > 0, message);
                            assertCovered(chunks, block, message);
                            row += block.rows();
                        }
                        assertEquals(chunks.shards().rows(source), row, message);
                    }
                });
    }

    /**
     * A chunk is named exactly if it shares a row with the block, and blocks cut no chunk twice.
     */
    private static void assertCovered(Chunks chunks, RowBlock block, String message) {
        long end = block.firstRow() + block.rows();
        for (int index = 0; index < chunks.count(block.source()); index++) {
            Chunk chunk = chunks.chunk(block.source(), index);
            long chunkEnd = chunk.firstRow() + chunk.rows();
            boolean overlaps = chunk.firstRow() < end && block.firstRow() < chunkEnd;
            boolean named =
                    index >= block.firstChunk() && index < block.firstChunk() + block.chunkCount();
            assertEquals(overlaps, named, message);
            boolean chunkInBlock = block.firstRow() <= chunk.firstRow() && chunkEnd <= end;
            boolean blockInChunk = chunk.firstRow() <= block.firstRow() && end <= chunkEnd;
            assertTrue(!overlaps || chunkInBlock || blockInChunk, message);
        }
    }

    @Test
    void segmentsAreWholeChunksAndWholeBlocks() {
        forRandomCases(
                (chunks, message) -> {
                    for (int source = 0; source < chunks.shards().ranks(); source++) {
                        int segments = chunks.segments(source);
                        assertEquals(
                                chunks.count(source), chunks.firstChunkOfSegment(source, segments));
                        assertEquals(
                                chunks.blocks(source),
                                chunks.firstBlockOfSegment(source, segments));
                        for (int segment = 0; segment < segments; segment++) {
                            assertSegment(chunks, source, segment, message);
                        }
                    }
                });
    }

    private static void assertSegment(Chunks chunks, int source, int segment, String message) {
        int firstChunk = chunks.firstChunkOfSegment(source, segment);
        int endChunk = chunks.firstChunkOfSegment(source, segment + 1);
        int firstBlock = chunks.firstBlockOfSegment(source, segment);
        int endBlock = chunks.firstBlockOfSegment(source, segment + 1);
        assertTrue(firstChunk < endChunk && firstBlock < endBlock, message);
        assertEquals(firstChunk, chunks.block(source, firstBlock).firstChunk(), message);
        RowBlock lastBlock = chunks.block(source, endBlock - 1);
        assertEquals(endChunk, lastBlock.firstChunk() + lastBlock.chunkCount(), message);
        Chunk lastChunk = chunks.chunk(source, endChunk - 1);
        assertEquals(
                lastChunk.firstRow() + lastChunk.rows(),
                lastBlock.firstRow() + lastBlock.rows(),
                message);
        for (int block = firstBlock; block < endBlock; block++) {
            long row = chunks.block(source, block).firstRow();
            assertEquals(segment, row / chunks.segmentRows(source), message);
        }
    }

    @Test
    void automaticGives64To128ChunksWhereTheRowsAllow() {
        Random random = new Random(1);
        for (int i = 0; i < 2000; i++) {
            int quantum = 1 + random.nextInt(300);
            long rows = random.nextLong(1L << (1 + random.nextInt(40)));
            Chunks chunks = Chunks.automatic(Shards.of(rows), 8, quantum, 256);
            String message = rows + " rows, quantum " + quantum;
            assertEquals(0, chunks.chunkRows(0) % quantum, message);
            if (rows >= 64L * quantum) {
                assertTrue(chunks.count(0) >= 64 && chunks.count(0) <= 128, message);
            } else {
                assertEquals(Math.ceilDiv(rows, quantum), chunks.count(0), message);
            }
        }
    }

    @Test
    void splitsGiveThatManyChunksWhereTheyDivide() {
        Chunks chunks = Chunks.bySplits(Shards.of(8, 9, 3, 0), 5, 4, 2);
        assertEquals(4, chunks.count(0));
        assertEquals(3, chunks.count(1));
        assertEquals(3, chunks.count(2));
        assertEquals(0, chunks.count(3));
        assertEquals(new Chunk(1, 2, 6, 3, 0, 5), chunks.chunk(1, 2));
    }

    @Test
    void chunkColsCutChunksSideBySide() {
        Chunks chunks = Chunks.byRows(Shards.of(5), 10, 2, 4).withChunkCols(4);
        assertEquals(3, chunks.colChunks());
        assertEquals(9, chunks.count(0));
        assertEquals(new Chunk(0, 5, 2, 2, 8, 2), chunks.chunk(0, 5));
        assertEquals(new Chunk(0, 6, 4, 1, 0, 4), chunks.chunk(0, 6));
        assertEquals(new RowBlock(0, 0, 4, 0, 6), chunks.block(0, 0));
        assertEquals(new RowBlock(0, 4, 1, 6, 3), chunks.block(0, 1));
        assertEquals(1, chunks.withChunkCols(99).colChunks());
    }

    @Test
    void blocksSmallerThanAChunkStartAnewInEveryChunk() {
        Chunks chunks = Chunks.byRows(Shards.of(12), 1, 5, 3);
        assertEquals(5, chunks.blocks(0));
        assertEquals(new RowBlock(0, 3, 2, 0, 1), chunks.block(0, 1));
        assertEquals(new RowBlock(0, 5, 3, 1, 1), chunks.block(0, 2));
        assertEquals(new RowBlock(0, 10, 2, 2, 1), chunks.block(0, 4));
    }

    @Test
    void equalCutsAreEqual() {
        Shards shards = Shards.of(8, 8);
        Chunks chunks = Chunks.byRows(shards, 4, 2, 4);
        assertEquals(chunks, Chunks.bySplits(shards, 4, 4, 4));
        assertEquals(chunks.hashCode(), Chunks.bySplits(shards, 4, 4, 4).hashCode());
        assertNotEquals(chunks, chunks.withChunkCols(2));
        assertNotEquals(chunks, Chunks.byRows(shards, 4, 2, 2));
        assertTrue(chunks.toString().contains("8,8 rows x 4 columns"), chunks.toString());
    }

    @Test
    void refusesWhatCannotBeCut() {
        Shards shards = Shards.of(4, 2);
        refuses("chunks of 0 rows", () -> Chunks.byRows(shards, 4, 0, 1));
        refuses("0 splits", () -> Chunks.bySplits(shards, 4, 0, 1));
        refuses("quantum of 0", () -> Chunks.automatic(shards, 4, 0, 1));
        refuses("0 columns", () -> Chunks.byRows(shards, 0, 1, 1));
        refuses("blocks of 0 rows", () -> Chunks.byRows(shards, 4, 1, 0));
        Chunks chunks = Chunks.byRows(shards, 4, 1, 1);
        refuses("chunks of 0 columns", () -> chunks.withChunkCols(0));
        refuses("chunk 2 of source 1: it has 2", () -> chunks.chunk(1, 2));
        refuses("chunk -1 of source 1", () -> chunks.chunk(1, -1));
        refuses("chunk 3 of source 1", () -> chunks.tag(1, 3));
        refuses("block 2 of source 1", () -> chunks.block(1, 2));
        refuses("block 2 of source 1", () -> chunks.block(1, 2));
        refuses("segment 3 of source 1", () -> chunks.firstChunkOfSegment(1, 3));
        refuses("segment 3 of source 1", () -> chunks.firstBlockOfSegment(1, 3));
    }

    private static void refuses(String message, Runnable call) {
        var refused = assertThrows(IllegalArgumentException.class, call::run);
        assertTrue(refused.getMessage().contains(message), refused.getMessage());
    }

    private static void forRandomCases(BiConsumer<Chunks, String> check) {
        for (long seed = 0; seed < 300; seed++) {
            Chunks chunks = PlanCases.randomChunks(seed, 1 + (int) (seed % 5));
            check.accept(chunks, "seed " + seed + ": " + chunks);
        }
    }
}
