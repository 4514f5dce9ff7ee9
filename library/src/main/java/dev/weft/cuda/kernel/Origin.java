package dev.weft.cuda.kernel;

/**
 * What a flag tells of.
 *
 * @param source rank that owns the rows
 * @param chunk number of the chunk within its shard
 */
public record Origin(int source, int chunk) {}
