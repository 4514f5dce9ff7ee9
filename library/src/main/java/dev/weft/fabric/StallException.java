package dev.weft.fabric;

import java.time.Duration;

/** Nothing moved for the length of the deadline, though no peer is known to be gone. */
public final class StallException extends FabricException {

    private static final long serialVersionUID = 1L;

    private final int source;
    private final int chunk;

    public StallException(
            int rank, int peer, int source, int chunk, String awaited, Duration deadline) {
        super(
                "rank "
                        + rank
                        + ": no progress of any peer for "
                        + deadline.toMillis()
                        + " ms while "
                        + awaited
                        + " was awaited",
                rank,
                peer);
        this.source = source;
        this.chunk = chunk;
    }

    /** The world's rank whose rows were awaited, or -1. */
    public int source() {
        return source;
    }

    /** The awaited chunk's number in its shard, or -1. */
    public int chunk() {
        return chunk;
    }
}
