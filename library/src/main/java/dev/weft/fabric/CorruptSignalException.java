package dev.weft.fabric;

/**
 * A signal word holds a value that its writer cannot have signalled: memory was overwritten, or the
 * writer miscounted.
 */
public final class CorruptSignalException extends FabricException {

    private static final long serialVersionUID = 1L;

    private final int source;
    private final int chunk;
    private final int seen;

    /**
     * @param awaited what was awaited
     * @param first the awaited value
     * @param last the highest value that the writer can have reached
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
                """
                rank %s: a corrupt signal: the word of %s holds %s: expected %s to %s, or less for \
                as long as it has not come"""
                        .formatted(rank, awaited, seen, first, last),
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
