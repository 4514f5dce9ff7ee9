package dev.weft.fabric;

/**
 * Moves rectangles between the parts of regions, for one thread. On one host a move is a copy, done
 * when {@link #move} returns; to and from another host some moves are under way at a time.
 */
public interface ChunkMover extends AutoCloseable {

    /**
     * Starts a move, and waits for earlier ones while too many are under way. Once it has landed,
     * {@link Move#flagAt} is set to {@code flag} and {@link Move#counterAt}, where there is one, to
     * {@code counter}.
     *
     * @param index the number by which {@code ended} is told of it
     */
    void move(int index, Move move, int flag, int counter);

    /** Waits until every move has ended. */
    void awaitAll();

    /** Once all has ended. */
    @Override
    void close();
}
