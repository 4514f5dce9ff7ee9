package dev.weft.plan.cut;

import dev.weft.plan.Chunks;
import dev.weft.plan.Shards;

/** How somebody wants shards to be cut into chunks; zeros leave it to Weft. Immutable. */
public record Cut(long chunkRows, int splitsPerRank, long chunkCols) {

    /** All left to Weft. */
    public static final Cut AUTOMATIC = new Cut(0, 0, 0);

    public Cut {
        if (chunkRows > 0 && splitsPerRank > 0) {
            throw new IllegalArgumentException(
                    "chunk rows %s and splits per rank %s: give one of the two"
                            .formatted(chunkRows, splitsPerRank));
        }
    }

    /** Whether the rows of a chunk are wanted and not left to Weft. */
    public boolean givesRows() {
        return chunkRows > 0 || splitsPerRank > 0;
    }

    /** The chunks of shards with {@code cols} columns, for an engine with that row quantum. */
    public Chunks chunks(Shards shards, long cols, int rowQuantum, long blockRows) {
        Chunks chunks;
        if (chunkRows > 0) {
            chunks = Chunks.byRows(shards, cols, chunkRows, blockRows);
        } else if (splitsPerRank > 0) {
            chunks = Chunks.bySplits(shards, cols, splitsPerRank, blockRows);
        } else {
            chunks = Chunks.automatic(shards, cols, rowQuantum, blockRows);
        }
        return chunkCols > 0 ? chunks.withChunkCols(chunkCols) : chunks;
    }

    /**
     * Rows that are multiplied in one go: {@code mostRows}, at which an engine has its full rate,
     * but few enough that each of {@code takers}, workers or lanes, gets some of a shard.
     */
    public static long blockRows(Shards shards, int takers, long rowQuantum, long mostRows) {
        long share = Math.ceilDiv(shards.maxRows(), takers);
        long quanta = Math.max(1, Math.ceilDiv(share, rowQuantum));
        return Math.min(mostRows, quanta * rowQuantum);
    }
}
