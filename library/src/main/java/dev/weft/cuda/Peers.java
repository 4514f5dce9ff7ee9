package dev.weft.cuda;

/**
 * The other ranks as one rank's operator sees them: where their rows lie, and when those may be
 * read and written. Every rank's rows lie in a buffer laid out like gathered A, in two of them that
 * calls use in turn. Used by the thread that calls the operator.
 */
interface Peers extends AutoCloseable {

    int rank();

    int size();

    /** The number by which errors name a rank. */
    int worldRank(int rank);

    /** Where rank {@code rank}'s buffer for calls of this parity starts, as this GPU sees it. */
    long buffer(int rank, int parity);

    /** Where rank {@code rank}'s flags start, as this GPU sees them. */
    long flags(int rank);

    /**
     * Whether the peers' rows are there independently of what this rank's stream does before a
     * call, so that copies need not wait for it.
     */
    boolean rowsAreThere();

    /** Returns when no peer reads this rank's rows of {@code call} any more. */
    void awaitUnread(int call);

    /**
     * Before call {@code call} writes its buffers: lets {@code stream} wait for who reads them.
     *
     * @param both whether the call before may have read them too
     */
    void awaitReuse(int call, boolean both, GpuStream stream);

    /**
     * This rank's rows for {@code call} are in its buffer once {@code stream} has come here.
     * Returns when every rank has announced the call.
     */
    void announce(int call, GpuStream stream);

    /** Lets {@code stream} wait until a peer has announced {@code call}. */
    void awaitAnnounced(int peer, int call, GpuStream stream);

    /**
     * Lets {@code stream} wait until every peer on the same GPU has announced {@code call}. A grid
     * that fills the GPU and waits for rows must not start before: the kernels that make those rows
     * would wait behind it.
     */
    void awaitSharers(int call, GpuStream stream);

    /** All that this rank does for {@code call} is queued, and {@code stream} comes after it. */
    void ended(int call, GpuStream stream);

    /**
     * A copy into {@code to}'s buffer is queued on this rank's stream of lane {@code lane}: who
     * forwards the rows may queue that now.
     */
    void pushed(int to, int flag, int lane, int call, GpuStream stream);

    /**
     * Whether the peer that brings the rows of {@code flag} has queued the copy for {@code call}.
     */
    boolean isPushed(int flag, int call);

    /** Lets {@code stream} wait for what {@code from} has queued on its lane {@code lane}. */
    void awaitPushed(int from, int lane, GpuStream stream);

    /** Returns when every rank has queued all that it does for {@code call}. */
    void awaitQueued(int call);

    /** Tells the peers that this rank's work has failed. */
    void fail(Throwable cause);

    /**
     * Waits until no peer reads this rank's memory any more: all have come here, after they have
     * drained their work. Collective.
     *
     * @return false where a peer did not come, so that memory and events must not be freed
     */
    boolean awaitRelease(boolean failed);

    /** Tells the peers that this rank is alive. */
    void worked();

    @Override
    void close();
}
