package dev.weft.cli.compat;

import dev.weft.cli.console.Progress;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.util.Comparator;
import java.util.List;

/** One rank's part of what the options ask for. Any rank's thread may run it. */
interface SourceRun {

    /**
     * Collective.
     *
     * @param progress told how far the measuring and then the verifying have come
     */
    SourceReport run(Fabric world, Progress progress) throws IOException;

    ReplicaGroups groups();

    /** Rows of A on each rank. */
    long m();

    /** Columns of A. */
    long k();

    /** Of A, B and C. */
    DType type();

    /**
     * Columns of B on all ranks of a group together, or of each rank's where they have their own; 0
     * where nothing is multiplied.
     */
    default long n() {
        return 0;
    }

    /** Columns that a rank computes. */
    default long cols(int worldRank) {
        return 0;
    }

    /** Whether each rank has a B of its own, which is given transposed. */
    default boolean ownB() {
        return false;
    }

    /** The largest group, or the first such. */
    default List<Integer> largest() {
        return groups().groups().stream().max(Comparator.comparingInt(List::size)).orElseThrow();
    }

    /** Of the largest group. */
    default int ranks() {
        return largest().size();
    }

    /** Columns that the largest group's first rank computes. */
    default long cols() {
        return cols(largest().getFirst());
    }

    /** Of a group's A. */
    default Shards shards(List<Integer> group) {
        return Shards.even(m() * group.size(), group.size());
    }

    /** Whether no group has the rank, which then makes all calls and takes no part. */
    default boolean sitsOut(int worldRank) {
        return groups().groupOf(worldRank) < 0;
    }

    /** As {@code , 2 of 6 ranks in none}; empty where every rank of the world is in a group. */
    default String idle(int worldRanks) {
        int members = groups().groups().stream().mapToInt(List::size).sum();
        return members == worldRanks
                ? ""
                : ", %s of %s ranks in none".formatted(worldRanks - members, worldRanks);
    }
}
