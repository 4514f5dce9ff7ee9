package dev.weft.cuda.exec;

/**
 * The other ranks as one rank's operator sees them: where their rows and flags lie. Each rank's
 * rows lie in two buffers laid out like gathered A, which calls use in turn. Used by the thread
 * that calls the operator.
 */
public interface Peers extends AutoCloseable {

    /** The number by which errors name a rank. */
    int worldRank(int rank);

    /** Where rank {@code rank}'s buffer for calls of this parity starts, as this GPU sees it. */
    long buffer(int rank, int parity);

    /** Where rank {@code rank}'s flags start, as this GPU sees them. */
    long flags(int rank);

    /** What keeps the ranks' host threads in step; null if this rank is alone. */
    HostSteps steps();

    /**
     * Waits until no peer reads this rank's memory any more: all have come here, after they have
     * drained their work. Collective.
     *
     * @return false if a peer did not come: then memory and events must not be freed
     */
    boolean awaitRelease(boolean failed);

    @Override
    void close();
}
