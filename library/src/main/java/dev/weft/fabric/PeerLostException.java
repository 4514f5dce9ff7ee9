package dev.weft.fabric;

/** A peer is gone, by death or by leaving, before it signalled what was awaited. */
public final class PeerLostException extends FabricException {

    private static final long serialVersionUID = 1L;

    public PeerLostException(int rank, int peer, String how, String awaited) {
        super(
                "rank "
                        + rank
                        + ": rank "
                        + peer
                        + " "
                        + how
                        + " while "
                        + awaited
                        + " was awaited",
                rank,
                peer);
    }
}
