package dev.weft.fabric;

import dev.weft.plan.Hosts;
import java.time.Duration;

/**
 * One rank's connection to the ranks of its group. A {@link World} gives one to each of its ranks.
 * Every rank calls the collective methods ({@link #split}, {@link #exchange}, {@link #barrier},
 * {@link #close}) in the same order, from one thread at a time. Any thread may call {@link #worked}
 * and {@link #fail}.
 */
public interface Fabric extends AutoCloseable {

    /** This rank's number in its group, 0 to {@link #size()} - 1. */
    int rank();

    /** The number of ranks in the group. */
    int size();

    /** The number of ranks in the world, of which this group may be a part. */
    int worldSize();

    /** The world rank of the group's rank {@code rank}; errors use it. */
    int worldRank(int rank);

    /** How ranks run: {@code threads}, {@code processes} or {@code mpi}. */
    String kind();

    /** The hosts of this group's ranks. */
    Hosts hosts();

    /** Whether every rank can read every peer's part of a region without a copy. */
    default boolean sharesMemory() {
        return hosts().count() == 1;
    }

    /** How long a wait lasts if its peers make no progress. */
    Duration deadline();

    /** Collective: cuts this group into equal ones and returns the fabric of this rank's. */
    default Fabric split(int groups) {
        return split(ReplicaGroups.equal(size(), groups));
    }

    /**
     * Collective: the fabric of this rank's group. Every rank passes the same groups, which name
     * ranks of this fabric. A rank that is in none of them gets a group with only itself.
     */
    Fabric split(ReplicaGroups groups);

    /** Collective: the values of all ranks, in rank order. */
    long[] exchange(long value);

    /** Collective: returns once every rank has called it. */
    void barrier();

    /** Tells the peers that this rank makes progress, so that their deadlines restart. */
    void worked();

    /** Tells the peers that this rank has failed; their waits end with an error. */
    void fail(Throwable cause);

    /**
     * Leaves the group: this rank signals no more. Shared memory is freed once every rank has left.
     */
    @Override
    void close();
}
