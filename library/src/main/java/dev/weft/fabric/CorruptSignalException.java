package dev.weft.fabric;

/**
 * A word holds what its writer cannot have signalled: memory was overwritten, or the writer has
 * lost count. It was not taken for a signal.
 */
public final class CorruptSignalException extends FabricException {

    private static final long serialVersionUID = 1L;

    private final int source;
    private final int chunk;
    private final int seen;

    /**
     * @param awaited in words
     * @param first the awaited value
     * @param last the furthest that the writer can rightly be
     */
    public CorruptSignalException(
            int rank,
            int peer,
            int source,
            int chunk,
            String awaited,
            int seen,
            int first,
            int last) {
        super(
                "rank "
                        + rank
                        + ": a corrupt signal: the word of "
                        + awaited
                        + " holds "
                        + seen
                        + ": expected "
                        + first
                        + " to "
                        + last
                        + ", or less for as long as it has not come",
                rank,
                peer);
        this.source = source;
        this.chunk = chunk;
        this.seen = seen;
    }

    /** The world's rank whose rows were awaited, or -1. */
    public int source() {
        return source;
    }

    /** The awaited chunk's number in its shard, or -1. */
    public int chunk() {
        return chunk;
    }

    /** What the word held. */
    public int seen() {
        return seen;
    }
}
