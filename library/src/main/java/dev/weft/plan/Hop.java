package dev.weft.plan;

/**
 * The transfer of a segment, or of a single chunk, between two ranks.
 *
 * @param segment -1 for a single chunk
 * @param chunk -1 for all chunks of the segment
 */
record Hop(int from, int to, int source, int segment, int chunk) {

    /** A hop of all chunks of a segment, by one lane. */
    Hop(int from, int to, int source, int segment) {
        this(from, to, source, segment, -1);
    }

    /** A hop of one chunk, straight from its owner. */
    static Hop ofChunk(int owner, int to, int chunk) {
        return new Hop(owner, to, owner, -1, chunk);
    }

    int firstChunk(Chunks chunks) {
        return chunk >= 0 ? chunk : chunks.firstChunkOfSegment(source, segment);
    }

    int endChunk(Chunks chunks) {
        return chunk >= 0 ? chunk + 1 : chunks.firstChunkOfSegment(source, segment + 1);
    }
}
