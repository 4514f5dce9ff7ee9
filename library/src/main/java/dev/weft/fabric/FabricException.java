package dev.weft.fabric;

import java.util.Optional;

/** A collective call cannot complete. The world it happened in is of no further use. */
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

    /** The world's rank that noticed. */
    public int rank() {
        return rank;
    }

    /** The world's rank that is the cause, as far as {@link #rank()} can tell. */
    public int peer() {
        return peer;
    }

    /** How things stood with {@link #rank()} when it gave up, where that is known. */
    public Optional<FailureReport> report() {
        return Optional.ofNullable(report);
    }

    /** Says how things stood; one who knows more than the last replaces what that one said. */
    public final void attach(FailureReport known) {
        report = known;
    }
}
