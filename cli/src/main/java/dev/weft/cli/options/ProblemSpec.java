package dev.weft.cli.options;

import dev.weft.cli.console.UsageException;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.math.BigInteger;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * What is computed, checked and complete. Every group has an A of as many rows. A rank in no group
 * sits out: it holds no rows of A and computes none of C.
 *
 * @param ranks of the world, over all groups
 * @param replicaGroups any lists of ranks that share none
 * @param shards rows of the first group's A; a group of another size has as many, spread evenly
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

    /** The number of groups. */
    public int groups() {
        return replicaGroups.count();
    }

    /** The world's rank that is member {@code member} of a group. */
    public int rankOf(int group, int member) {
        return replicaGroups.groups().get(group).get(member);
    }

    /** Ranks of the largest group. */
    public int largestGroup() {
        return sizes().max().orElseThrow();
    }

    private IntStream sizes() {
        return replicaGroups.groups().stream().mapToInt(List::size);
    }

    /** Whether no group has the rank. */
    public boolean sitsOut(int worldRank) {
        return groupOf(worldRank) < 0;
    }

    /** The ranks that gather with the rank, in their order; the rank alone where it sits out. */
    public List<Integer> members(int worldRank) {
        return replicaGroups.with(worldRank);
    }

    /** Rows of A on each of {@link #members}; none where the rank sits out. */
    public Shards shards(int worldRank) {
        if (sitsOut(worldRank)) {
            return Shards.of(0);
        }
        int members = members(worldRank).size();
        return members == shards.ranks() ? shards : Shards.even(m(), members);
    }

    /** The rank's first row in the As of all groups, one below the other. */
    public long firstRow(int worldRank) {
        return Math.max(0, groupOf(worldRank)) * m()
                + shards(worldRank).firstRow(memberOf(worldRank));
    }

    /** Rows of one group's gathered A. */
    public long m() {
        return shards.totalRows();
    }

    public int groupOf(int worldRank) {
        return replicaGroups.groupOf(worldRank);
    }

    public int memberOf(int worldRank) {
        return members(worldRank).indexOf(worldRank);
    }

    private Shards columns(int worldRank) {
        return Shards.even(n, members(worldRank).size());
    }

    /** First of the columns of B that the rank holds. */
    public long firstCol(int worldRank) {
        return columnSharded ? columns(worldRank).firstRow(memberOf(worldRank)) : 0;
    }

    /**
     * Columns of B that the rank holds, and of the C that it computes. Where it sits out that is
     * one, since a GPU multiplies by no B without columns.
     */
    public long cols(int worldRank) {
        if (sitsOut(worldRank)) {
            return Math.min(1, n);
        }
        return columnSharded ? columns(worldRank).rows(memberOf(worldRank)) : n;
    }

    /** Floating-point operations of one rank's product; the widest rank's where they differ. */
    public double flopsPerRank() {
        int smallest = sizes().min().orElseThrow();
        return 2.0 * m() * k * (columnSharded ? Math.ceilDiv(n, smallest) : n);
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
                        describeGroups());
    }

    private String describeGroups() {
        if (replicaGroups.isEqual(ranks)) {
            return groups() > 1 ? ", " + groups() + " groups" : "";
        }
        int idle = ranks - sizes().sum();
        return ", groups of ranks "
                + excerpt(replicaGroups.toString())
                + (idle > 0 ? ", " + idle + " of " + ranks + " ranks in none" : "");
    }

    private String shortShards() {
        return excerpt(
                replicaGroups.groups().stream()
                        .map(group -> shards(group.getFirst()).toString())
                        .distinct()
                        .collect(Collectors.joining(" or ")));
    }

    private static String excerpt(String all) {
        return all.length() <= 40 ? all : all.substring(0, all.lastIndexOf(',', 40)) + ",...";
    }
}
