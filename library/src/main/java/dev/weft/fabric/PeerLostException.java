package dev.weft.fabric;

/** A peer has died or left before it signalled what was awaited. */
public final class PeerLostException extends FabricException {

    private static final long serialVersionUID = 1L;

    public PeerLostException(int rank, int peer, String how, String awaited) {
        super(
                "rank %s: rank %s %s while %s was awaited".formatted(rank, peer, how, awaited),
                rank,
                peer);
    }
}
