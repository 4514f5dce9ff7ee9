package dev.weft.compat;

import dev.weft.fabric.Fabric;
import dev.weft.tensor.Matrix;
import java.util.function.Supplier;

/** What the Helion calls refuse, each with the actual numbers. Any thread may call. */
final class HelionChecks {

    private HelionChecks() {}

    static Fabric group(Fabric group) {
        if (group == null) {
            throw new IllegalArgumentException(
                    "no group: expected the fabric of the ranks that gather");
        }
        return group;
    }

    static void sameGroup(Fabric group, Fabric other, String name) {
        if (group != other) {
            throw new IllegalArgumentException(
                    name
                            + " was made on another group, of "
                            + other.size()
                            + " ranks: expected the group of "
                            + group.size()
                            + " ranks that gathers");
        }
    }

    static void splits(int splitsPerRank) {
        if (splitsPerRank < 1) {
            throw new IllegalArgumentException(
                    splitsPerRank + " splits per rank: expected at least one");
        }
    }

    static void longEnough(int size, int ranks, int splitsPerRank) {
        if (size < (long) ranks * splitsPerRank) {
            throw new IllegalArgumentException(
                    "progress for "
                            + size
                            + " chunks: expected at least "
                            + (long) ranks * splitsPerRank
                            + ", "
                            + ranks
                            + " ranks x "
                            + splitsPerRank
                            + " splits");
        }
    }

    static void contiguous(String name, Matrix matrix) {
        if (!matrix.isContiguous()) {
            throw new IllegalArgumentException(
                    name
                            + " "
                            + matrix.describe()
                            + " is not contiguous: its rows are "
                            + matrix.rowPitch()
                            + " elements apart, expected "
                            + matrix.cols());
        }
    }

    static void divisible(long rows, long cols, int splitsPerRank) {
        if (rows * cols % splitsPerRank != 0) {
            throw new IllegalArgumentException(
                    rows * cols
                            + " elements of ["
                            + rows
                            + ", "
                            + cols
                            + "] in "
                            + splitsPerRank
                            + " splits: expected a number of splits that divides them");
        }
    }

    /** Gathered A, whoever made it. */
    static void gathered(String name, Matrix gathered, HelionShared shard) {
        long rows = shard.rows() * shard.group().size();
        if (gathered.rows() != rows
                || gathered.cols() != shard.cols()
                || gathered.dtype() != shard.dtype()) {
            throw new IllegalArgumentException(
                    name
                            + " is "
                            + gathered.describe()
                            + ": expected ["
                            + rows
                            + ", "
                            + shard.cols()
                            + "] "
                            + shard.dtype().label()
                            + " for "
                            + shard.group().size()
                            + " shards of "
                            + shard.local().describe());
        }
        contiguous(name, gathered);
        if (!gathered.data().isAccessibleBy(new Thread())) {
            throw new IllegalArgumentException(
                    name + " belongs to one thread: expected memory that all threads may use");
        }
    }

    static void inner(long aCols, long k, long n) {
        if (aCols != k) {
            throw new IllegalArgumentException(
                    "K is " + aCols + " in A and " + k + " in B [" + k + ", " + n + "]");
        }
    }

    /** Collective: refused on every rank where the value of some rank differs from the first's. */
    static void agreed(Fabric group, String what, long value) {
        long[] values = group.exchange(value);
        for (int r = 1; r < values.length; r++) {
            if (values[r] != values[0]) {
                throw new IllegalArgumentException(
                        what
                                + ": "
                                + values[0]
                                + " on rank "
                                + group.worldRank(0)
                                + " and "
                                + values[r]
                                + " on rank "
                                + group.worldRank(r)
                                + ", expected the same on all");
            }
        }
    }

    /** Peers whose arguments are fine must not wait for a rank that refuses. */
    static <T> T orFail(Fabric group, Supplier<T> call) {
        group(group);
        try {
            return call.get();
        } catch (RuntimeException | Error e) {
            group.fail(e);
            throw e;
        }
    }
}
