package dev.weft.sim;

import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.RankPlan;
import dev.weft.tensor.DType;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * What is priced: one call of an operator, as its ranks have planned it.
 *
 * @param symmetric whether ranks do the same, unless shards, hosts and wires differ: see {@link
 *     PlanWriter#isSymmetric}
 * @param hosts how the ranks are placed on nodes; {@link Machine#hosts} gives the machine's default
 * @param columns N of each product; empty for a gather without a product
 * @param workers compute threads per rank, or units of a {@link TileEngine} that multiply (more
 *     than it has add nothing); 0 for the rank's share of the cores, or all units
 * @param slowRanks by rank, the factor by which its products and what its cores move are slower;
 *     other ranks have the machine's speed
 * @param sums for plans that sum products over ranks; otherwise null
 */
public record Scenario(
        List<RankPlan> plans,
        Chunks chunks,
        boolean symmetric,
        Hosts hosts,
        DType aType,
        DType outType,
        List<Long> columns,
        boolean keepGathered,
        int workers,
        Map<Integer, Double> slowRanks,
        Sums sums) {

    public Scenario {
        columns = List.copyOf(columns);
        slowRanks = Map.copyOf(slowRanks);
        if (hosts.ranks() != chunks.shards().ranks()) {
            throw new IllegalArgumentException(
                    "hosts of " + hosts + " ranks for " + chunks.shards().ranks() + " shards");
        }
        slowRanks.forEach(
                (rank, factor) -> {
                    if (rank < 0
                            || rank >= hosts.ranks()
                            || !(factor > 0 && Double.isFinite(factor))) {
                        throw new IllegalArgumentException(
                                "rank %s %s times as slow: expected one of %s ranks and a positive factor"
                                        .formatted(rank, factor, hosts.ranks()));
                    }
                });
    }

    /** The parts of K over which a rank multiplies its blocks, in order. */
    List<Long> partsOfK(RankPlan plan) {
        if (sums == null) {
            return List.of(chunks.cols());
        }
        return IntStream.range(0, ranks())
                .filter(r -> plan.sumsFor(r, hosts))
                .mapToObj(sums.inner()::rows)
                .toList();
    }

    public int ranks() {
        return hosts.ranks();
    }
}
