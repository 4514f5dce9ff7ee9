package dev.weft.plan;

/**
 * Rows of one shard that are multiplied together, once every chunk that covers them has arrived.
 *
 * @param source the rank that owns the shard
 * @param firstRow relative to the shard
 * @param firstChunk first of the {@code chunkCount} consecutive chunks that cover the rows
 */
record RowBlock(int source, long firstRow, long rows, int firstChunk, int chunkCount) {}
