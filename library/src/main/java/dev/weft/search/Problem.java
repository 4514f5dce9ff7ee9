package dev.weft.search;

import dev.weft.plan.Hosts;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.Cut;
import dev.weft.sim.Sums;
import dev.weft.tensor.DType;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * What the choice of a plan depends on: the sizes, types and settings of an operator's call.
 * Immutable: any thread may use it.
 *
 * @param k columns of A, all ranks' together where products are summed
 * @param columns N of each product, on the rank with the widest; empty for a gather alone
 * @param keepGathered whether gathered A is left for the caller
 * @param workers compute threads of a rank, or blocks of work for its engine's units; 0 for its
 *     share of the cores, or one for each unit
 * @param lanes communication workers of a rank; 0 for as many as suit the algorithm
 * @param cut how shards are to be cut; {@link Cut#AUTOMATIC} leaves it to the search
 * @param hosts how the ranks lie on hosts; null for as many on each as a node of the machine has
 * @param slowRanks for each slow rank, how many times as long it takes
 * @param sums of a product that is summed over ranks, where the shards are rows of C; otherwise
 *     null
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

    /** One product of {@code n} columns on each rank, with all else left to the search. */
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
        return new Problem(
                Shards.even(rows, shards.ranks()),
                k,
                columns,
                aType,
                outType,
                keepGathered,
                workers,
                lanes,
                cut,
                hosts,
                slowRanks,
                sums);
    }

    /** A copy whose ranks lie on hosts like this. */
    public Problem on(Hosts newHosts) {
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
                newHosts,
                slowRanks,
                sums);
    }

    /** A copy whose products are summed. */
    public Problem summed(Sums newSums) {
        return new Problem(
                shards, k, columns, aType, outType, false, workers, lanes, cut, hosts, slowRanks,
                newSums);
    }

    /** A way to sum this problem's products. */
    public PlanWriter writer(Reduction reduction) {
        return reduction.writer(sums.inner(), sums.all());
    }

    /** Of all products. */
    long allColumns() {
        return columns.stream().mapToLong(Long::longValue).sum();
    }

    int ranks() {
        return shards.ranks();
    }

    /** Of gathered A. */
    double gatheredBytes() {
        return (double) shards.totalRows() * k * aType.bytes();
    }
}
