package dev.weft.compat.command;

import dev.weft.cli.console.Progress;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.util.Comparator;
import java.util.List;

/** One rank's part of what the options describe. Any rank's thread may run it. */
interface SourceRun {

    /**
     * Collective.
     *
     * @param progress shows how far the measuring and then the verifying have come
     */
    SourceReport run(Fabric world, Progress progress) throws IOException;

    ReplicaGroups groups();

    /** Rows of A on each rank. */
    long m();

    /** Columns of A. */
    long k();

    /** The type of A, B and C. */
    DType type();

    /**
     * Columns of B on all ranks of a group together, or on each rank if they have their own; 0 if
     * nothing is multiplied.
     */
    default long n() {
        return 0;
    }

    /** Columns that a rank computes. */
    default long cols(int worldRank) {
        return 0;
    }

    /** Whether each rank has its own B, which is given transposed. */
    default boolean ownB() {
        return false;
    }

    /** Bytes that the inputs and results of all ranks have at least. */
    default double leastBytes() {
        double elements = 0;
        for (List<Integer> group : groups().groups()) {
            double all = (double) m() * group.size() * k();
            elements += n() == 0 ? all * (1 + group.size()) : all;
            for (int rank : group) {
                elements += (double) cols(rank) * (k() + (double) m() * group.size());
            }
        }
        return elements * type().bytes();
    }

    /** The largest group, or the first such. */
    default List<Integer> largest() {
        return groups().groups().stream().max(Comparator.comparingInt(List::size)).orElseThrow();
    }

    /** The ranks of the largest group. */
    default int ranks() {
        return largest().size();
    }

    /** Columns that the largest group's first rank computes. */
    default long cols() {
        return cols(largest().getFirst());
    }

    /** The shards of a group's A. */
    default Shards shards(List<Integer> group) {
        return Shards.even(m() * group.size(), group.size());
    }

    /** Whether the rank is in no group; it then makes all calls but does not take part. */
    default boolean sitsOut(int worldRank) {
        return groups().groupOf(worldRank) < 0;
    }

    /** Like {@code , 2 of 6 ranks in none}; empty if every rank of the world is in a group. */
    default String idle(int worldRanks) {
        int members = groups().groups().stream().mapToInt(List::size).sum();
        return members == worldRanks
                ? ""
                : ", %s of %s ranks in none".formatted(worldRanks - members, worldRanks);
    }
}
