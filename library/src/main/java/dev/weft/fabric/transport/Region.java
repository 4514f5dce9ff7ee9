package dev.weft.fabric.transport;

import java.lang.foreign.MemorySegment;

/**
 * Memory that every rank of a group can reach, with one part per rank. A part starts at a page and
 * is initially zero. Ranks of one host see each other's parts.
 */
public interface Region extends AutoCloseable {

    /** The first bytes of a part hold the words that ranks on other hosts may wait for. */
    long WORDS_BYTES = 4096;

    /**
     * The part of the group's rank {@code rank}, of the size that it asked for.
     *
     * @throws IllegalStateException if that rank is on another host
     */
    MemorySegment part(int rank);

    /** A name, the same on every rank of the group and different for every region. */
    String name();

    /** Releases all parts for this rank; peers can use them until they do so too. */
    @Override
    void close();
}
