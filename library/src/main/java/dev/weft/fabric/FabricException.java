package dev.weft.fabric;

/** A collective call cannot complete. The world it happened in is of no further use. */
public abstract sealed class FabricException extends RuntimeException
        permits PeerFailedException, PeerLostException, StallException {

    private static final long serialVersionUID = 1L;

    private final int rank;
    private final int peer;

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
}
