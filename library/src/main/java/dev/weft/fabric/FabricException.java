package dev.weft.fabric;

import dev.weft.process.TaskThread;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * A wait for a peer that cannot complete. The world cannot be used any more: a new one is needed.
 */
public abstract sealed class FabricException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    private final int rank;
    private final int peer;
    private final int source;
    private final int chunk;
    private transient volatile FailureReport report;

    private FabricException(String message, int rank, int peer, int source, int chunk) {
        super(message);
        this.rank = rank;
        this.peer = peer;
        this.source = source;
        this.chunk = chunk;
    }

    /** The world's rank that noticed the error. */
    public int rank() {
        return rank;
    }

    /** The world's rank that caused it, as far as {@link #rank()} can tell. */
    public int peer() {
        return peer;
    }

    /** The world's rank whose rows were awaited, or -1. */
    public int source() {
        return source;
    }

    /** The awaited chunk's number in its shard, or -1. */
    public int chunk() {
        return chunk;
    }

    /** What {@link #rank()} waited for and knew about its peers, if available. */
    public Optional<FailureReport> report() {
        return Optional.ofNullable(report);
    }

    /** Sets the report; a caller that knows more replaces an earlier one. */
    public final void attach(FailureReport known) {
        report = known;
    }

    /** A peer has reported that its work failed. */
    public static final class PeerFailedException extends FabricException {

        private static final long serialVersionUID = 1L;

        private final String reason;

        public PeerFailedException(int rank, int peer, String reason) {
            super("rank " + rank + ": rank " + peer + " failed: " + reason, rank, peer, -1, -1);
            this.reason = reason;
        }

        /** The message of the peer, or of the rank that first noticed its end. */
        public String reason() {
            return reason;
        }
    }

    /** A peer has died or left before it signalled what was awaited. */
    public static final class PeerLostException extends FabricException {

        private static final long serialVersionUID = 1L;

        public PeerLostException(int rank, int peer, String how, String awaited) {
            super(
                    "rank %s: rank %s %s while %s was awaited".formatted(rank, peer, how, awaited),
                    rank,
                    peer,
                    -1,
                    -1);
        }
    }

    /** No peer has made progress before the deadline, though none is known to be gone. */
    public static final class StallException extends FabricException {

        private static final long serialVersionUID = 1L;

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
                    peer,
                    source,
                    chunk);
            String thread = TaskThread.currentName();
            long waitedMs = deadline.toMillis();
            FailureReport.Wait wait =
                    new FailureReport.Wait(thread, awaited, peer, source, -1, -1, waitedMs);
            attach(FailureReport.of(rank, List.of(wait), List.of()));
        }
    }

    /**
     * A signal word holds a value that its writer cannot have signalled: memory was overwritten, or
     * the writer miscounted.
     */
    public static final class CorruptSignalException extends FabricException {

        private static final long serialVersionUID = 1L;

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
                    rank %s: a corrupt signal: the word of %s holds %s: expected %s to %s, or less \
                    for as long as it has not come"""
                            .formatted(rank, awaited, seen, first, last),
                    rank,
                    peer,
                    source,
                    chunk);
            this.seen = seen;
        }

        /** What the word held. */
        public int seen() {
            return seen;
        }
    }
}
