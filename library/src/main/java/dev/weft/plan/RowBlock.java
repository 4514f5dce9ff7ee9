package dev.weft.plan;

/**
 * The unit of consumption: rows of one shard that are multiplied in one go, once every chunk that
 * covers them has arrived.
 *
 * @param source the rank that owns the shard
 * @param firstRow relative to the shard
 * @param firstChunk first of the {@code chunkCount} consecutive chunks that cover the rows
 */
public record RowBlock(int source, long firstRow, long rows, int firstChunk, int chunkCount) {}
