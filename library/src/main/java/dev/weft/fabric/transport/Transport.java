package dev.weft.fabric.transport;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.ReplicaGroups;
import java.lang.foreign.MemorySegment;
import java.util.function.IntConsumer;

/**
 * A fabric as operators use it: regions of memory that peers can reach, words to signal and to wait
 * for, and movers of chunks. {@link #split}, {@link #allocate} and {@link #rowGather} are
 * collective. Any thread may call {@link #signal}, {@link #publish} and {@link #await}.
 *
 * <p>Ranks of one host share memory: each sees the others' parts of a region. Parts on another host
 * can be reached only by {@link #signal}, {@link #publish} and a {@link ChunkMover}.
 */
public interface Transport extends Fabric {

    /** The transport behind a fabric that a user was given. */
    static Transport of(Fabric fabric) {
        if (fabric instanceof Transport transport) {
            return transport;
        }
        throw new IllegalArgumentException(
                "a fabric of %s: expected one of a World's ranks"
                        .formatted(fabric.getClass().getName()));
    }

    @Override
    default Transport split(int groups) {
        return split(ReplicaGroups.equal(size(), groups));
    }

    @Override
    Transport split(ReplicaGroups groups);

    /** How this rank shares cores with others. */
    CoreShare cores();

    /** Collective: several values of each rank at once, by value and rank. */
    long[][] exchange(long[] values);

    /**
     * Collective: a region, zeroed, with {@code bytes} for this rank's part; other ranks may ask
     * for other sizes. Its memory is reserved here, so that using it later cannot fail.
     */
    Region allocate(long bytes);

    /**
     * A region of this rank alone, in memory that the caller owns: its part is {@code words}, and
     * no other rank has one. Not collective.
     */
    Region around(MemorySegment words);

    /**
     * Sets the word at {@code offset} of {@code home}'s part of the region to {@code value} and
     * wakes the threads of that host that wait for it. Everything that this thread has written
     * before, itself or by moves to that rank, is visible to a thread that sees the value. The
     * caller is the word's only writer.
     */
    void signal(Region region, int home, long offset, int value);

    /**
     * Sets a word of this rank's own part, like {@link #signal}, for ranks on all hosts to wait
     * for. It is within the part's first {@link Region#WORDS_BYTES} bytes.
     */
    void publish(Region region, long offset, int value);

    /**
     * Sets 8 bytes of this rank's own part, within the same first bytes, for ranks on all hosts to
     * read once they have seen a word that was published later.
     */
    void publishValue(Region region, long offset, long value);

    /** What {@code home} has published by {@link #publishValue}. */
    long value(Region region, int home, long offset);

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
     * Whether {@link #await} would return at once. A word past what {@link Awaited#lead} allows
     * does not count as a signal. A fabric that wraps another one passes the call on.
     */
    default boolean reached(Region region, int home, long offset, int value, Awaited what) {
        return reached(region, home, offset, value);
    }

    /**
     * Throws if a rank of the group has failed or died: for waits that no word ends. Call it at
     * most a few times a second. A fabric that wraps another one passes the call on.
     */
    default void checkPeers() {}

    /**
     * Whether a rank has left or died, and so will not signal any more. Like {@link #checkPeers},
     * call it only a few times a second.
     */
    default boolean isGone(int rank) {
        return false;
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
}
