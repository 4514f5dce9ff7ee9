package dev.weft.plan;

import dev.weft.plan.step.Placement.Range;
import java.util.Arrays;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * How the rows of A are spread over the ranks of a group: shard after shard in rank order. Shards
 * may be uneven and a rank may own no rows at all. Immutable.
 */
public final class Shards {

    /** {@code starts[r]} is the first row of rank r, {@code starts[ranks]} the total. */
    private final long[] starts;

    private Shards(long[] starts) {
        this.starts = starts;
    }

    /** Shards of the given sizes, one per rank. */
    public static Shards of(long... rowsPerRank) {
        if (rowsPerRank.length == 0) {
            throw new IllegalArgumentException("no shards: a group has at least one rank");
        }
        long[] starts = new long[rowsPerRank.length + 1];
        for (int r = 0; r < rowsPerRank.length; r++) {
            if (rowsPerRank[r] < 0) {
                throw new IllegalArgumentException(
                        "shard of rank %s has %s rows: expected zero or more"
                                .formatted(r, rowsPerRank[r]));
            }
            starts[r + 1] = Math.addExact(starts[r], rowsPerRank[r]);
        }
        return new Shards(starts);
    }

    /** Shards that differ by at most one row; the first ranks get the extra rows. */
    public static Shards even(long totalRows, int ranks) {
        if (ranks < 1 || totalRows < 0) {
            throw new IllegalArgumentException(
                    "%s rows over %s ranks: expected zero or more rows and at least one rank"
                            .formatted(totalRows, ranks));
        }
        long[] rows = new long[ranks];
        for (int r = 0; r < ranks; r++) {
            rows[r] = totalRows / ranks + (r < totalRows % ranks ? 1 : 0);
        }
        return of(rows);
    }

    public int ranks() {
        return starts.length - 1;
    }

    public long rows(int rank) {
        return starts[checked(rank) + 1] - starts[rank];
    }

    /** Where the shard of {@code rank} starts in gathered A. */
    public long firstRow(int rank) {
        return starts[checked(rank)];
    }

    /** The same number, if there is such a rank. */
    int checked(int rank) {
        if (rank < 0 || rank >= ranks()) {
            throw new IllegalArgumentException(
                    "rank %s of %s shards: expected 0 to %s".formatted(rank, ranks(), ranks() - 1));
        }
        return rank;
    }

    public long totalRows() {
        return starts[ranks()];
    }

    /** Whether there are as many ranks, and none has more rows than there. */
    public boolean fitsIn(Shards most) {
        boolean fits = ranks() == most.ranks();
        for (int r = 0; fits && r < most.ranks(); r++) {
            fits = rows(r) <= most.rows(r);
        }
        return fits;
    }

    /** The rows of the largest shard. */
    public long maxRows() {
        return each().max().orElseThrow();
    }

    private LongStream each() {
        return IntStream.range(0, ranks()).mapToLong(this::rows);
    }

    /** The rows of one rank. */
    Range range(int rank) {
        return new Range(firstRow(rank), rows(rank));
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Shards shards && Arrays.equals(starts, shards.starts);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(starts);
    }

    @Override
    public String toString() {
        return each().mapToObj(String::valueOf).collect(Collectors.joining(","));
    }
}
