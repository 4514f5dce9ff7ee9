package dev.weft.exec.host;

import dev.weft.plan.Chunks;

/** What reports and timelines call the rows of A and C: whose they are, and which chunk. */
record RowNames(Chunks chunks) {

    /** The rank whose shard has this row of the whole matrix. */
    int source(long row) {
        int low = 0;
        int high = chunks.shards().ranks() - 1;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (row < chunks.shards().firstRow(middle + 1)) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return low;
    }

    /** The row's place in the shard of {@code source}. */
    long rowOfShard(int source, long row) {
        return row - chunks.shards().firstRow(source);
    }

    /** The number of the chunk that has this element, among those of its shard; -1 if none has. */
    int chunk(long row, long col) {
        int source = source(row);
        int chunk =
                Math.toIntExact(
                        rowOfShard(source, row) / chunks.chunkRows(source) * chunks.colChunks()
                                + col / chunks.chunkCols());
        return chunk < chunks.count(source) ? chunk : -1;
    }

    /** How many chunks cover whole rows from {@code row} on. */
    int chunksOf(long row, long rows) {
        if (rows == 0) {
            return 0;
        }
        int source = source(row);
        long first = rowOfShard(source, row);
        long height = chunks.chunkRows(source);
        return Math.toIntExact(
                ((first + rows - 1) / height - first / height + 1) * chunks.colChunks());
    }

    /**
     * How many of the rows from {@code row} on are complete once {@code count} chunks have come.
     */
    long completeRows(long row, long rows, int count) {
        int source = source(row);
        long first = rowOfShard(source, row);
        long height = chunks.chunkRows(source);
        long end = (first / height + count / chunks.colChunks()) * height;
        return Math.clamp(end - first, 0, rows);
    }
}
