package dev.weft.fabric.transport;

/**
 * Moves rectangles between the parts of regions, for one thread. Within a host a move is a copy,
 * done when {@link #move} returns. Between hosts it is sent, and several can be under way at a
 * time.
 */
public interface ChunkMover extends AutoCloseable {

    /**
     * Starts a move, and waits for earlier ones while too many are under way. Once it has arrived,
     * {@link Move#flagAt} is set to {@code flag} and {@link Move#counterAt}, if there is one, to
     * {@code counter}.
     *
     * @param index the number that is passed to {@code ended} of {@link Transport#mover}
     */
    void move(int index, Move move, int flag, int counter);

    /** Waits until every move has ended. */
    void awaitAll();

    /** Frees the mover, once every move has ended. */
    @Override
    void close();
}
