package dev.weft.cli.options;

import dev.weft.cli.console.UsageException;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.plan.Shards;
import dev.weft.report.RunRecord;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.QuantizedMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.math.BigInteger;
import java.util.List;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * What is computed, checked and complete. Every group has an A with the same number of rows. A rank
 * in no group sits out: it holds no rows of A and computes none of C.
 *
 * <p>Either ranks hold rows of A, which are gathered; or they hold columns of A and rows of B, a
 * part of K each, and their products are summed ({@link Sums}).
 *
 * @param ranks the ranks of the world, over all groups
 * @param replicaGroups disjoint lists of ranks
 * @param shards rows of the first group's A, or of the C that it sums; a group of another size has
 *     the same rows, spread evenly
 * @param n columns of the whole B
 * @param columnSharded whether each rank holds its own columns of B, spread evenly
 * @param sums null if rows of A are gathered
 * @param fp8 what A and B are quantized to; null if they are multiplied unchanged
 * @param blocks what B is in, or quantized to, while A keeps its type; null for elements
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
        long seed,
        Sums sums,
        Fp8 fp8,
        BlockType blocks) {

    /** Gathers rows of A. */
    public static final String GATHER = RunRecord.Problem.GATHER;

    /** Sums products, and leaves every rank its rows of C. */
    public static final String SCATTER = "matmul-reduce-scatter";

    /** Sums products, and leaves every rank all of C. */
    public static final String ALL = "matmul-allreduce";

    /**
     * A product that is summed over the ranks of a group.
     *
     * @param all whether every rank gets all rows of C, or only those of its {@link #shards shard}
     * @param kParts parts of K of the first group; in a group of another size K is spread evenly
     */
    public record Sums(boolean all, Shards kParts) {

        Sums over(long newK, BlockType blocks) {
            boolean same = kParts.totalRows() == newK;
            return same ? this : new Sums(all, evenParts(newK, kParts.ranks(), blocks));
        }
    }

    /**
     * How inputs become operands of 8 bits: A of e4m3.
     *
     * @param b the type of B
     */
    public record Fp8(DType b, Scaling scaling) {

        @Override
        public String toString() {
            return "scales by " + scaling.label();
        }
    }

    /** The kind of data if the inputs are the user's own. */
    public static final String FILES = "files";

    public ProblemSpec {
        checkBytes("A", aType, shards.totalRows(), k, ranks);
        checkBytes("B", bType, k, n, ranks);
        checkBytes("C", outType, shards.totalRows(), n, ranks);
        if (blocks != null) {
            checkBlocks(blocks, k, sums == null ? Shards.of(k) : sums.kParts);
        }
    }

    private static void checkBlocks(BlockType blocks, long k, Shards parts) {
        for (int r = 0; r < parts.ranks(); r++) {
            if (parts.rows(r) % blocks.elements() != 0) {
                throw new UsageException(
                        "K of %s in parts of %s with --b-dtype %s: expected multiples of %s",
                        k, parts, blocks.label(), blocks.elements());
            }
        }
    }

    /** Parts of K that are whole blocks, if B has blocks and K is a multiple of them. */
    static Shards evenParts(long k, int parts, BlockType blocks) {
        int unit = blocks == null || k % blocks.elements() != 0 ? 1 : blocks.elements();
        Shards even = Shards.even(k / unit, parts);
        return Shards.of(IntStream.range(0, parts).mapToLong(r -> even.rows(r) * unit).toArray());
    }

    /** Refuses a matrix whose copies on all ranks have more bytes than 64 bits can count. */
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

    /** The value of {@code --op}. */
    public String op() {
        if (sums == null) {
            return GATHER;
        }
        return sums.all ? ALL : SCATTER;
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

    /** Whether the rank is in no group. */
    public boolean sitsOut(int worldRank) {
        return groupOf(worldRank) < 0;
    }

    /** The ranks that gather with the rank, in their order; only the rank itself if it sits out. */
    public List<Integer> members(int worldRank) {
        return replicaGroups.with(worldRank);
    }

    /** Rows of A on each of {@link #members}; none if the rank sits out. */
    public Shards shards(int worldRank) {
        if (sitsOut(worldRank)) {
            return Shards.of(0);
        }
        int members = members(worldRank).size();
        return members == shards.ranks() ? shards : Shards.even(m(), members);
    }

    /** Whether ranks have rows of A that are gathered; otherwise their products are summed. */
    public boolean gathers() {
        return sums == null;
    }

    /** Parts of K on each of {@link #members}, if their products are summed. */
    public Shards kParts(int worldRank) {
        int members = members(worldRank).size();
        return members == sums.kParts.ranks() ? sums.kParts : evenParts(k, members, blocks);
    }

    /** A rank's part of a matrix. */
    public record Block(long firstRow, long rows, long firstCol, long cols) {

        public Matrix of(Matrix whole) {
            return whole.block(firstRow, rows, firstCol, cols);
        }

        public QuantizedMatrix of(QuantizedMatrix whole) {
            return whole.block(firstRow, rows, firstCol, cols);
        }
    }

    /** What the rank holds of its group's A. */
    public Block aOfGroup(int worldRank) {
        Shards all = shards(worldRank);
        int member = memberOf(worldRank);
        return sums == null
                ? new Block(all.firstRow(member), all.rows(member), 0, k)
                : new Block(0, all.totalRows(), firstK(worldRank), ownK(worldRank));
    }

    /** What the rank holds of the As of all groups, one below the other. */
    public Block a(int worldRank) {
        Block own = aOfGroup(worldRank);
        long first = Math.max(0, groupOf(worldRank)) * m() + own.firstRow;
        return new Block(first, own.rows, own.firstCol, own.cols);
    }

    /** What the rank holds of B, as that is stored. */
    public Block b(int worldRank) {
        long first = firstCol(worldRank);
        return transposeB
                ? new Block(first, cols(worldRank), firstK(worldRank), ownK(worldRank))
                : new Block(firstK(worldRank), ownK(worldRank), first, cols(worldRank));
    }

    private long firstK(int worldRank) {
        return sums == null ? 0 : kParts(worldRank).firstRow(memberOf(worldRank));
    }

    private long ownK(int worldRank) {
        return sums == null ? k : kParts(worldRank).rows(memberOf(worldRank));
    }

    /** Whether a rank gets all rows of its group's C. */
    public boolean hasAllRowsOfC() {
        return sums == null || sums.all;
    }

    /** The first row of its group's C that the rank gets. */
    public long firstRowOfC(int worldRank) {
        return hasAllRowsOfC() ? 0 : shards(worldRank).firstRow(memberOf(worldRank));
    }

    /** The rows of its group's C that the rank gets. */
    public long rowsOfC(int worldRank) {
        Shards all = shards(worldRank);
        return hasAllRowsOfC() ? all.totalRows() : all.rows(memberOf(worldRank));
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
     * Columns of B that the rank holds. If it sits out these are two, since a GPU needs a B with
     * columns and an epilogue may halve them.
     */
    public long cols(int worldRank) {
        if (sitsOut(worldRank)) {
            return Math.min(2, n);
        }
        return columnSharded ? columns(worldRank).rows(memberOf(worldRank)) : n;
    }

    /**
     * Floating-point operations of one rank's product; of the widest if they differ, or the mean if
     * they share one product.
     */
    public double flopsPerRank() {
        int smallest = sizes().min().orElseThrow();
        if (sums != null) {
            return 2.0 * m() * k * n / smallest;
        }
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
                seed,
                sums == null ? null : sums.over(newK, blocks),
                fp8,
                blocks);
    }

    /** A description for the summary. */
    public String describe() {
        if (sums != null) {
            return describeSums();
        }
        return "A [%s, %s] %s in shards of %s rows, B [%s, %s] %s%s%s%s, C %s%s"
                .formatted(
                        m(),
                        k,
                        multipliedA().label(),
                        shortShards(),
                        k,
                        n,
                        labelOfB(),
                        transposeB ? " stored transposed" : "",
                        columnSharded ? " column-sharded" : " replicated",
                        fp8 == null ? "" : ", " + fp8,
                        outType.label(),
                        describeGroups());
    }

    /** The type in which A is gathered and multiplied; {@link #aType} is the type in its file. */
    public DType multipliedA() {
        return fp8 == null ? aType : DType.E4M3;
    }

    /** Whether what is multiplied is not what the files hold. */
    public boolean quantizes() {
        return fp8 != null || blocks != null;
    }

    /** The type in which B is multiplied, as records name it. */
    public String labelOfB() {
        return blocks == null ? multipliedB().label() : blocks.label();
    }

    /** The type in which elements of B are multiplied. */
    public DType multipliedB() {
        return fp8 == null ? bType : fp8.b;
    }

    private String describeSums() {
        return "A [%s, %s] %s in parts of %s columns, B [%s, %s] %s%s in as many rows, C %s %s%s"
                .formatted(
                        m(),
                        k,
                        aType.label(),
                        perGroup(this::kParts),
                        k,
                        n,
                        labelOfB(),
                        transposeB ? " stored transposed" : "",
                        outType.label(),
                        sums.all ? "on every rank" : "in shards of " + shortShards() + " rows",
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
        return perGroup(this::shards);
    }

    private String perGroup(IntFunction<Shards> cut) {
        return excerpt(
                replicaGroups.groups().stream()
                        .map(group -> cut.apply(group.getFirst()).toString())
                        .distinct()
                        .collect(Collectors.joining(" or ")));
    }

    private static String excerpt(String all) {
        return all.length() <= 40 ? all : all.substring(0, all.lastIndexOf(',', 40)) + ",...";
    }
}
