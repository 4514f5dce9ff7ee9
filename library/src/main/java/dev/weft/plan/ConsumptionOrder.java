package dev.weft.plan;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;

/** The orders in which a rank multiplies row blocks. Pure: any thread may call it. */
final class ConsumptionOrder {

    private ConsumptionOrder() {}

    /** All rows in natural order. */
    static List<RowBlock> natural(Chunks chunks) {
        return rotated(chunks, 0);
    }

    /** Own rows first, then shard by shard those of the ranks that follow. */
    static List<RowBlock> rotated(Chunks chunks, int rank) {
        List<RowBlock> order = new ArrayList<>();
        int ranks = chunks.shards().ranks();
        for (int distance = 0; distance < ranks; distance++) {
            addShard(order, chunks, (rank + distance) % ranks);
        }
        return order;
    }

    /**
     * Own rows first, then blocks in the order in which they are complete if all lanes start at
     * once and move rows at the same rate. Of blocks that are complete at once the one of the
     * earlier lane comes first.
     */
    static List<RowBlock> asDelivered(Chunks chunks, int rank, List<Delivery> deliveries) {
        List<RowBlock> order = new ArrayList<>();
        addShard(order, chunks, rank);
        PriorityQueue<Cursor> next =
                new PriorityQueue<>(
                        Comparator.comparingLong(Cursor::rowsDelivered)
                                .thenComparingInt(Cursor::turn));
        for (int turn = 0; turn < deliveries.size(); turn++) {
            next.add(new Cursor(chunks, deliveries.get(turn), turn));
        }
        while (!next.isEmpty()) {
            Cursor cursor = next.remove();
            order.add(cursor.block());
            if (cursor.advance()) {
                next.add(cursor);
            }
        }
        return order;
    }

    /** Own rows first, then segment by segment those that are named. */
    static List<RowBlock> bySegments(Chunks chunks, int rank, List<Held> segments) {
        List<RowBlock> order = new ArrayList<>();
        addShard(order, chunks, rank);
        for (Held held : segments) {
            addSegment(order, chunks, held.source(), held.segment());
        }
        return order;
    }

    private static void addShard(List<RowBlock> order, Chunks chunks, int source) {
        addBlocks(order, chunks, source, 0, chunks.blocks(source));
    }

    private static void addSegment(List<RowBlock> order, Chunks chunks, int source, int segment) {
        int first = chunks.firstBlockOfSegment(source, segment);
        addBlocks(order, chunks, source, first, chunks.firstBlockOfSegment(source, segment + 1));
    }

    private static void addBlocks(
            List<RowBlock> order, Chunks chunks, int source, int first, int end) {
        for (int index = first; index < end; index++) {
            order.add(chunks.block(source, index));
        }
    }

    /** Walks the blocks that one lane delivers. */
    private static final class Cursor {
        private final Chunks chunks;
        private final List<Hop> hops;
        private final int turn;
        private int hop;
        private int index;
        private RowBlock block;
        private long rowsBeforeHop;
        private long rowsDelivered;

        Cursor(Chunks chunks, Delivery delivery, int turn) {
            this.chunks = chunks;
            this.hops = delivery.hops();
            this.turn = turn;
            this.rowsBeforeHop = delivery.rowsBefore();
            enterHop();
        }

        RowBlock block() {
            return block;
        }

        /** Rows that the lane has moved once the block is complete. */
        long rowsDelivered() {
            return rowsDelivered;
        }

        int turn() {
            return turn;
        }

        /** Whether there is another block. */
        boolean advance() {
            Hop current = hops.get(hop);
            index++;
            if (index < chunks.firstBlockOfSegment(current.source(), current.segment() + 1)) {
                load();
                return true;
            }
            rowsBeforeHop = rowsDelivered;
            hop++;
            if (hop == hops.size()) {
                return false;
            }
            enterHop();
            return true;
        }

        private void enterHop() {
            Hop current = hops.get(hop);
            index = chunks.firstBlockOfSegment(current.source(), current.segment());
            load();
        }

        private void load() {
            Hop current = hops.get(hop);
            block = chunks.block(current.source(), index);
            Chunk last = chunks.chunk(block.source(), block.firstChunk() + block.chunkCount() - 1);
            long segmentStart = current.segment() * chunks.segmentRows(current.source());
            rowsDelivered = rowsBeforeHop + last.firstRow() + last.rows() - segmentStart;
        }
    }
}
