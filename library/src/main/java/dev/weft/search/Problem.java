package dev.weft.search;

import dev.weft.plan.Hosts;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.Cut;
import dev.weft.tensor.DType;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * What the choice of a plan depends on: the sizes, types and settings of an operator's call.
 * Immutable and thread-safe.
 *
 * @param k columns of A; of all ranks together if products are summed
 * @param columns N of each product, on the rank with the widest; empty for a gather without a
 *     product
 * @param keepGathered whether gathered A is kept for the caller
 * @param workers compute threads of a rank, or blocks of work for its engine's units; 0 for its
 *     share of the cores, or one for each unit
 * @param lanes communication workers of a rank; 0 for what suits the algorithm
 * @param cut how shards are to be cut; {@link Cut#AUTOMATIC} leaves it to the search
 * @param hosts how the ranks are placed on hosts; null to fill the nodes of the machine
 * @param slowRanks for each slow rank, the factor by which it is slower
 * @param sums for a product that is summed over ranks, in which case the shards are rows of C;
 *     otherwise null
 */
public record Problem(
        Shards shards,
        long k,
        List<Long> columns,
        DType aType,
        DType outType,
        boolean keepGathered,
        int workers,
        int lanes,
        Cut cut,
        Hosts hosts,
        Map<Integer, Double> slowRanks,
        Sums sums) {

    public Problem {
        Objects.requireNonNull(shards, "shards");
        Objects.requireNonNull(cut, "cut");
        columns = List.copyOf(columns);
        slowRanks = Map.copyOf(slowRanks);
        if (k < 1 || workers < 0 || lanes < 0) {
            throw new IllegalArgumentException(
                    "K of %d, %d workers and %d lanes: expected K of one or more and nothing negative"
                            .formatted(k, workers, lanes));
        }
    }

    /** One product of {@code n} columns on each rank, with everything else left to the search. */
    public static Problem of(Shards shards, long k, long n, DType aType, DType outType) {
        return new Problem(
                shards,
                k,
                List.of(n),
                aType,
                outType,
                false,
                0,
                0,
                Cut.AUTOMATIC,
                null,
                Map.of(),
                null);
    }

    /** A copy with another number of rows, evenly spread. */
    public Problem withRows(long rows) {
        return with(Shards.even(rows, shards.ranks()), keepGathered, hosts, sums);
    }

    /** A copy whose ranks are placed on these hosts. */
    public Problem on(Hosts newHosts) {
        return with(shards, keepGathered, newHosts, sums);
    }

    /** A copy whose products are summed. */
    public Problem summed(Sums newSums) {
        return with(shards, false, hosts, newSums);
    }

    /** A copy with ranks that are slower by these factors. */
    public Problem slowed(Map<Integer, Double> slow) {
        return new Problem(
                shards,
                k,
                columns,
                aType,
                outType,
                keepGathered,
                workers,
                lanes,
                cut,
                hosts,
                slow,
                sums);
    }

    private Problem with(Shards newShards, boolean keeps, Hosts newHosts, Sums newSums) {
        return new Problem(
                newShards, k, columns, aType, outType, keeps, workers, lanes, cut, newHosts,
                slowRanks, newSums);
    }

    /** The columns of all products. */
    public long allColumns() {
        return columns.stream().mapToLong(Long::longValue).sum();
    }

    int ranks() {
        return shards.ranks();
    }

    /** Whether there is nothing to send. */
    boolean isAlone() {
        return ranks() == 1 || shards.totalRows() == 0;
    }

    /** The bytes of gathered A. */
    double gatheredBytes() {
        return (double) shards.totalRows() * k * aType.bytes();
    }
}
