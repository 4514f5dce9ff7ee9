package dev.weft.fabric;

import dev.weft.plan.Hosts;
import java.time.Duration;
import java.util.function.IntConsumer;

/**
 * One rank's connection to the ranks of its group. Collective methods ({@link #split}, {@link
 * #allocate}, {@link #exchange}, {@link #barrier}, {@link #close}) are called by every rank in the
 * same order, by one thread of the rank at a time. Any thread may call {@link #signal}, {@link
 * #publish}, {@link #await}, {@link #worked} and {@link #fail}.
 *
 * <p>Ranks of one host share memory: each sees the others' parts of a region. Parts on another host
 * are reached by {@link #signal}, {@link #publish} and a {@link ChunkMover} alone.
 */
public interface Fabric extends AutoCloseable {

    /** This rank's number in its group, 0 to {@link #size()} - 1. */
    int rank();

    /** The number of ranks in the group. */
    int size();

    /** The number of ranks in the world, of which this group may be a part. */
    int worldSize();

    /** The world's number of the group's rank {@code rank}, by which errors name it. */
    int worldRank(int rank);

    /** How ranks run: {@code threads}, {@code processes} or {@code mpi}. */
    String kind();

    /** The hosts of this group's ranks. */
    Hosts hosts();

    /** Whether every rank can read every peer's part of a region without a copy. */
    default boolean sharesMemory() {
        return hosts().count() == 1;
    }

    /** How this rank shares cores with others. */
    CoreShare cores();

    /** How long a wait goes on without any progress of its peers. */
    Duration deadline();

    /** Collective: the fabric of this rank's subgroup, when this group is cut into equal ones. */
    Fabric split(int groups);

    /**
     * Collective: a region, zeroed, with {@code bytes} for this rank's part; other ranks may ask
     * for other sizes. Its memory is reserved here, so that using it later cannot fail.
     */
    Region allocate(long bytes);

    /** Collective: the values of all ranks, in rank order. */
    long[] exchange(long value);

    /** Collective: returns once every rank has called it. */
    void barrier();

    /**
     * Sets the word at {@code offset} of {@code home}'s part of the region to {@code value} and
     * wakes the threads of that host that wait for it. All that this thread has written before,
     * itself or by moves to that rank, is visible to a thread that sees the value. The caller is
     * the word's only writer.
     */
    void signal(Region region, int home, long offset, int value);

    /**
     * Sets a word of this rank's own part, like {@link #signal}, for ranks on all hosts to wait
     * for. It is within the part's first {@link Region#WORDS_BYTES} bytes.
     */
    void publish(Region region, long offset, int value);

    /**
     * Waits until the word at {@code offset} of {@code home}'s part is {@code value} or past it;
     * values wrap around at 32 bits. What its writer wrote before the signal is then visible. Of
     * parts on another host, only published words can be waited for.
     *
     * @throws FabricException if the awaited rank stalls, dies, leaves or fails, or if the word is
     *     past what {@link Awaited#lead} allows
     */
    void await(Region region, int home, long offset, int value, Awaited what);

    /** Whether {@link #await} would return at once; if so, with the same visibility. */
    boolean reached(Region region, int home, long offset, int value);

    /**
     * Whether {@link #await} would return at once. A word past what {@link Awaited#lead} allows is
     * not taken for a signal. A fabric that wraps another one passes the call on.
     */
    default boolean reached(Region region, int home, long offset, int value, Awaited what) {
        return reached(region, home, offset, value);
    }

    /**
     * A mover of chunks, for one thread.
     *
     * @param ended called, by any thread, with the number of each move once its source may be
     *     overwritten and, for a move to this rank, it has arrived
     */
    ChunkMover mover(IntConsumer ended);

    /** Collective: the fabric's own all-gather, or null if it has none. */
    default RowGather rowGather() {
        return null;
    }

    /** CPU time of the fabric's own threads in this process, in nanoseconds. */
    default long ownCpuNs() {
        return 0;
    }

    /** Tells the peers that this rank makes progress, so that their deadlines start anew. */
    void worked();

    /** Tells the peers that this rank has failed; their waits end with an error. */
    void fail(Throwable cause);

    /** Leaves: this rank signals no more. Collective memory is freed once every rank has left. */
    @Override
    void close();
}
