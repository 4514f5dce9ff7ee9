package dev.weft.fabric;

import java.lang.foreign.MemorySegment;

/**
 * Memory that every rank of a group can reach: one part per rank. Parts start on a page and are
 * zero at first.
 */
public interface Region extends AutoCloseable {

    /** The part of the group's rank {@code rank}, of the size that rank asked for. */
    MemorySegment part(int rank);

    /** Lets go of this rank's hold on all parts; a peer may still use them through its own. */
    @Override
    void close();
}
