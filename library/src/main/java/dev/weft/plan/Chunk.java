package dev.weft.plan;

/**
 * The unit of transfer and of signalling: a rectangle of one shard.
 *
 * @param source the rank that owns the shard
 * @param index number of the chunk within its shard, row by row
 * @param firstRow relative to the shard
 */
public record Chunk(int source, int index, long firstRow, long rows, long firstCol, long cols) {}
