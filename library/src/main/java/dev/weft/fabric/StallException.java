package dev.weft.fabric;

import java.time.Duration;
import java.util.List;

/** No peer has made progress before the deadline, though none is known to be gone. */
public final class StallException extends FabricException {

    private static final long serialVersionUID = 1L;

    private final int source;
    private final int chunk;

    public StallException(
            int rank, int peer, int source, int chunk, String awaited, Duration deadline) {
        this(rank, peer, source, chunk, awaited, deadline, false);
    }

    /**
     * @param silent whether nothing at all has arrived from {@code peer}
     */
    public StallException(
            int rank,
            int peer,
            int source,
            int chunk,
            String awaited,
            Duration deadline,
            boolean silent) {
        super(
                "rank %s: no progress of any peer for %s ms while %s was awaited%s"
                        .formatted(
                                rank,
                                deadline.toMillis(),
                                awaited,
                                silent ? "; rank " + peer + " is not heard of at all" : ""),
                rank,
                peer);
        this.source = source;
        this.chunk = chunk;
        String thread = Thread.currentThread().getName();
        long waitedMs = deadline.toMillis();
        attach(
                FailureReport.of(
                        rank,
                        List.of(
                                new FailureReport.Wait(
                                        thread, awaited, peer, source, -1, -1, waitedMs)),
                        List.of()));
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
