package dev.weft.fabric;

import dev.weft.plan.Hosts;
import java.time.Duration;
import java.util.function.IntConsumer;

/**
 * One rank's way to the ranks of its group. Collective methods ({@link #split}, {@link #allocate},
 * {@link #exchange}, {@link #barrier}, {@link #close}) are called by every rank in the same order,
 * by one thread of the rank at a time; {@link #signal}, {@link #publish}, {@link #await}, {@link
 * #worked} and {@link #fail} by any thread.
 *
 * <p>Ranks of one host share memory: each sees the others' parts of a region. What lies on another
 * host is reached by {@link #signal}, {@link #publish} and a {@link ChunkMover} alone.
 */
public interface Fabric extends AutoCloseable {

    /** This rank's number in its group, 0 to {@link #size()} - 1. */
    int rank();

    int size();

    /** Ranks of the whole world, of which this group may be a part. */
    int worldSize();

    /** The number in the world of the group's rank {@code rank}; errors name ranks by it. */
    int worldRank(int rank);

    /** {@code threads}, {@code processes} or {@code mpi}. */
    String kind();

    /** How the ranks of this group lie on hosts. */
    Hosts hosts();

    /** Whether every rank can read every peer's part of a region in place, without a copy. */
    default boolean sharesMemory() {
        return hosts().count() == 1;
    }

    /** With which other ranks this one shares the cores that its process may use. */
    CoreShare cores();

    /** How long a wait lasts in which no awaited peer makes any progress. */
    Duration deadline();

    /** Collective over this group: the fabric of this rank's part when cut into equal groups. */
    Fabric split(int groups);

    /**
     * Collective: memory of {@code bytes} (each rank may ask for another size), zeroed, which every
     * rank of the group can reach. Space is reserved here; using it later cannot fail.
     */
    Region allocate(long bytes);

    /** Collective: every rank's value, by rank. */
    long[] exchange(long value);

    /** Collective: returns once every rank has called it. */
    void barrier();

    /**
     * Sets the word at {@code offset} of {@code home}'s part of the region to {@code value} and
     * wakes who waits for it on that host. All this thread has written before, itself or by a
     * mover's moves from here to that rank, is visible to who sees the value. The caller is the
     * word's only writer.
     */
    void signal(Region region, int home, long offset, int value);

    /**
     * As {@link #signal} to a word of this rank's own part, which ranks on other hosts may wait for
     * too. It lies within the part's first {@link Region#WORDS_BYTES} bytes.
     */
    void publish(Region region, long offset, int value);

    /**
     * Waits until the word at {@code offset} of {@code home}'s part is {@code value} or past it
     * (counted round the 32-bit range). What its writer wrote before the signal is then visible. On
     * another host only published words can be waited for.
     *
     * @throws FabricException if the awaited rank stalls, dies, leaves or fails, or if the word is
     *     past what {@link Awaited#lead} allows
     */
    void await(Region region, int home, long offset, int value, Awaited what);

    /** Whether {@link #await} would return at once. Visible like {@link #await} if so. */
    boolean reached(Region region, int home, long offset, int value);

    /**
     * The same where a word past what {@link Awaited#lead} allows is not taken for a signal. A
     * fabric that stands before another one passes it on.
     */
    default boolean reached(Region region, int home, long offset, int value, Awaited what) {
        return reached(region, home, offset, value);
    }

    /**
     * One that moves chunks for one thread.
     *
     * @param ended is told the number of each move once its source may be overwritten and, for a
     *     move to this rank, it has arrived; called by any thread
     */
    ChunkMover mover(IntConsumer ended);

    /** Collective: an all-gather of the fabric's own, or null where it has none. */
    default RowGather rowGather() {
        return null;
    }

    /** CPU time that threads of the fabric itself have used in this process, in nanoseconds. */
    default long ownCpuNs() {
        return 0;
    }

    /** Tells the peers that this rank got something done: slow is not dead. */
    void worked();

    /** Tells the peers that this rank's work has failed; their waits end with an error. */
    void fail(Throwable cause);

    /** Leaves: this rank signals no more. Collective memory is freed once every rank has left. */
    @Override
    void close();
}
