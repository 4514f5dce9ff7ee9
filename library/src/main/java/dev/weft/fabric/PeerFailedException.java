package dev.weft.fabric;

/** A peer reported that its own work failed; the message carries its reason. */
public final class PeerFailedException extends FabricException {

    private static final long serialVersionUID = 1L;

    private final String reason;

    public PeerFailedException(int rank, int peer, String reason) {
        super("rank " + rank + ": rank " + peer + " failed: " + reason, rank, peer);
        this.reason = reason;
    }

    /** What the peer, or who first noticed its end, had to say. */
    public String reason() {
        return reason;
    }
}
