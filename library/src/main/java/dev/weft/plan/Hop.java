package dev.weft.plan;

/**
 * The transfer of a segment, or of a single chunk, between two ranks.
 *
 * @param segment -1 for a single chunk
 * @param chunk -1 for all chunks of the segment
 * @param pulled whether the receiver gets it; otherwise the sender puts it
 */
record Hop(int from, int to, int source, int segment, int chunk, boolean pulled) {

    /** A hop of all chunks of a segment, by one lane. */
    static Hop ofSegment(int from, int to, int source, int segment, boolean pulled) {
        return new Hop(from, to, source, segment, -1, pulled);
    }

    /** A hop of one chunk, straight from its owner. */
    static Hop ofChunk(int owner, int to, int chunk, boolean pulled) {
        return new Hop(owner, to, owner, -1, chunk, pulled);
    }

    /** The part of this hop that is one chunk. */
    Hop ofOne(int only) {
        return new Hop(from, to, source, -1, only, pulled);
    }

    /** The rank whose lane carries it. */
    int initiator() {
        return pulled ? to : from;
    }

    /** Whether the chunk must first have arrived at {@link #from}. */
    boolean isForward() {
        return from != source;
    }

    int firstChunk(Chunks chunks) {
        return chunk >= 0 ? chunk : chunks.firstChunkOfSegment(source, segment);
    }

    int endChunk(Chunks chunks) {
        return chunk >= 0 ? chunk + 1 : chunks.firstChunkOfSegment(source, segment + 1);
    }
}
