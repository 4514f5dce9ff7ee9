package dev.weft.cli.options;

import dev.weft.cli.console.UsageException;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.math.BigInteger;

/**
 * What is computed, checked and complete.
 *
 * @param ranks of the world, over all groups
 * @param replicaGroups all ranks in groups of as many each
 * @param shards rows of one group's A; every group has the same cut
 * @param n columns of the whole B
 * @param columnSharded whether each rank holds its own columns of B, spread evenly
 */
public record ProblemSpec(
        int ranks,
        ReplicaGroups replicaGroups,
        Shards shards,
        long k,
        long n,
        DType aType,
        DType bType,
        DType outType,
        boolean columnSharded,
        boolean transposeB,
        String data,
        long seed) {

    /** Stands for the kind of data where the inputs are the user's own. */
    public static final String FILES = "files";

    public ProblemSpec {
        checkBytes("A", aType, shards.totalRows(), k, ranks);
        checkBytes("B", bType, k, n, ranks);
        checkBytes("C", outType, shards.totalRows(), n, ranks);
    }

    /** Refuses a matrix that, once for each rank, has more bytes than 64 bits can count. */
    public static void checkBytes(String name, DType type, long rows, long cols, int ranks) {
        BigInteger bytes =
                BigInteger.valueOf(rows)
                        .multiply(BigInteger.valueOf(cols))
                        .multiply(BigInteger.valueOf((long) type.bytes() * ranks));
        if (bytes.bitLength() >= Long.SIZE) {
            throw new UsageException(
                    "%s [%s, %s] %s for %s ranks is %s bytes: expected at most %s",
                    name, rows, cols, type.label(), ranks, bytes, Long.MAX_VALUE);
        }
    }

    public int ranksPerGroup() {
        return ranks / groups();
    }

    /** The number of groups. */
    public int groups() {
        return replicaGroups.count();
    }

    /** The world's rank that is member {@code member} of a group. */
    public int rankOf(int group, int member) {
        return replicaGroups.groups().get(group).get(member);
    }

    /** Rows of one group's gathered A. */
    public long m() {
        return shards.totalRows();
    }

    public int groupOf(int worldRank) {
        return replicaGroups.groupOf(worldRank);
    }

    public int memberOf(int worldRank) {
        return replicaGroups.with(worldRank).indexOf(worldRank);
    }

    private Shards columns() {
        return Shards.even(n, ranksPerGroup());
    }

    /** First of the columns of B that the rank holds. */
    public long firstCol(int worldRank) {
        return columnSharded ? columns().firstRow(memberOf(worldRank)) : 0;
    }

    /** Columns of B that the rank holds, and of the C that it computes. */
    public long cols(int worldRank) {
        return columnSharded ? columns().rows(memberOf(worldRank)) : n;
    }

    /** Floating-point operations of one rank's product; the widest rank's where they differ. */
    public double flopsPerRank() {
        return 2.0 * m() * k * cols(0);
    }

    /** This problem on the user's own files, which decide shape and types. */
    public ProblemSpec ofFiles(Shards newShards, long newK, long newN, DType newA, DType newB) {
        return new ProblemSpec(
                ranks,
                replicaGroups,
                newShards,
                newK,
                newN,
                newA,
                newB,
                outType,
                columnSharded,
                transposeB,
                FILES,
                seed);
    }

    /** In words, as the summary shows it. */
    public String describe() {
        return "A [%s, %s] %s in shards of %s rows, B [%s, %s] %s%s%s, C %s%s"
                .formatted(
                        m(),
                        k,
                        aType.label(),
                        shortShards(),
                        k,
                        n,
                        bType.label(),
                        transposeB ? " stored transposed" : "",
                        columnSharded ? " column-sharded" : " replicated",
                        outType.label(),
                        groups() > 1 ? ", " + groups() + " groups" : "");
    }

    private String shortShards() {
        String all = shards.toString();
        return all.length() <= 40 ? all : all.substring(0, all.lastIndexOf(',', 40)) + ",...";
    }
}
