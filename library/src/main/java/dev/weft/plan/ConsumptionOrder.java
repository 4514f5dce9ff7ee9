package dev.weft.plan;

import dev.weft.plan.Chunks.RowBlock;
import dev.weft.plan.HostRouting.Held;
import dev.weft.plan.Routing.Delivery;
import dev.weft.plan.Routing.Hop;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.ToLongFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** The orders in which a rank multiplies row blocks. Pure and thread-safe. */
final class ConsumptionOrder {

    private ConsumptionOrder() {}

    /** All rows in natural order. */
    static List<RowBlock> natural(Chunks chunks) {
        return rotated(chunks, 0);
    }

    /** Own rows first, then the shards of the ranks that follow, one by one. */
    static List<RowBlock> rotated(Chunks chunks, int rank) {
        int ranks = chunks.shards().ranks();
        return IntStream.range(rank, rank + ranks)
                .boxed()
                .flatMap(r -> blocks(chunks, r % ranks, 0, chunks.blocks(r % ranks)))
                .toList();
    }

    /** A block, and how many rows its lane has moved once the block is complete. */
    private record Due(RowBlock block, long rows) {}

    /**
     * Own rows first, then blocks in the order in which they become complete if all lanes start at
     * once and move rows at the same rate. If two become complete at once, the earlier lane's comes
     * first.
     */
    static List<RowBlock> asDelivered(Chunks chunks, int rank, List<Delivery> deliveries) {
        List<Due> due = new ArrayList<>();
        for (Delivery delivery : deliveries) {
            long before = delivery.rowsBefore();
            for (Hop hop : delivery.hops()) {
                long start = before - hop.segment() * chunks.segmentRows(hop.source());
                segment(chunks, hop.source(), hop.segment())
                        .forEach(block -> due.add(new Due(block, start + endRow(chunks, block))));
                before = start + chunks.endRow(hop.source(), hop.segment());
            }
        }
        // Stable: blocks of a lane keep their order.
        due.sort(Comparator.comparingLong(Due::rows));
        return ownFirst(chunks, rank, due.stream().map(Due::block));
    }

    /** The row of the shard up to which chunks must have arrived for a block. */
    private static long endRow(Chunks chunks, RowBlock block) {
        int last = block.firstChunk() + block.chunkCount() - 1;
        Chunk chunk = chunks.chunk(block.source(), last);
        return chunk.firstRow() + chunk.rows();
    }

    /**
     * Own rows first, then blocks in the order in which they are due; if due at once, those of the
     * nearest preceding rank first.
     */
    static List<RowBlock> byDue(Chunks chunks, int rank, ToLongFunction<RowBlock> due) {
        int ranks = chunks.shards().ranks();
        Stream<RowBlock> others =
                IntStream.range(1, ranks)
                        .map(distance -> Math.floorMod(rank - distance, ranks))
                        .boxed()
                        .flatMap(source -> blocks(chunks, source, 0, chunks.blocks(source)))
                        .sorted(Comparator.comparingLong(due));
        return ownFirst(chunks, rank, others);
    }

    /** Own rows first, then those of {@code segments}, in their order. */
    static List<RowBlock> bySegments(Chunks chunks, int rank, List<Held> segments) {
        return ownFirst(
                chunks,
                rank,
                segments.stream().flatMap(held -> segment(chunks, held.source(), held.segment())));
    }

    private static List<RowBlock> ownFirst(Chunks chunks, int rank, Stream<RowBlock> others) {
        return Stream.concat(blocks(chunks, rank, 0, chunks.blocks(rank)), others).toList();
    }

    private static Stream<RowBlock> segment(Chunks chunks, int source, int segment) {
        int first = chunks.firstBlockOfSegment(source, segment);
        return blocks(chunks, source, first, chunks.firstBlockOfSegment(source, segment + 1));
    }

    private static Stream<RowBlock> blocks(Chunks chunks, int source, int first, int end) {
        return IntStream.range(first, end).mapToObj(index -> chunks.block(source, index));
    }
}
