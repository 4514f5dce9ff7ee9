package dev.weft.fabric;

/** A peer has reported that its work failed. */
public final class PeerFailedException extends FabricException {

    private static final long serialVersionUID = 1L;

    private final String reason;

    public PeerFailedException(int rank, int peer, String reason) {
        super("rank " + rank + ": rank " + peer + " failed: " + reason, rank, peer);
        this.reason = reason;
    }

    /** The message of the peer, or of the rank that first noticed its end. */
    public String reason() {
        return reason;
    }
}
