package dev.weft.fabric;

import java.lang.foreign.MemorySegment;

/**
 * Memory that every rank of a group can reach: one part per rank. Parts start on a page and are
 * zero at first. Ranks of one host see each other's parts.
 */
public interface Region extends AutoCloseable {

    /** Where the words of a part lie that ranks on other hosts may wait for: at its beginning. */
    long WORDS_BYTES = 4096;

    /**
     * The part of the group's rank {@code rank}, of the size that rank asked for.
     *
     * @throws IllegalStateException if that rank is on another host
     */
    MemorySegment part(int rank);

    /** The same on every rank of the group, another for every region. */
    String name();

    /** Lets go of this rank's hold on all parts; a peer may still use them through its own. */
    @Override
    void close();
}
