package dev.weft.fabric;

import java.util.Optional;

/**
 * A wait for a peer that cannot complete. The world cannot be used any more: a new one is needed.
 */
public abstract sealed class FabricException extends RuntimeException
        permits CorruptSignalException, PeerFailedException, PeerLostException, StallException {

    private static final long serialVersionUID = 1L;

    private final int rank;
    private final int peer;
    private transient volatile FailureReport report;

    FabricException(String message, int rank, int peer) {
        super(message);
        this.rank = rank;
        this.peer = peer;
    }

    /** The world's rank that noticed the error. */
    public int rank() {
        return rank;
    }

    /** The world's rank that caused it, as far as {@link #rank()} can tell. */
    public int peer() {
        return peer;
    }

    /** What {@link #rank()} waited for and knew about its peers, if available. */
    public Optional<FailureReport> report() {
        return Optional.ofNullable(report);
    }

    /** Sets the report; a caller that knows more replaces an earlier one. */
    public final void attach(FailureReport known) {
        report = known;
    }
}
