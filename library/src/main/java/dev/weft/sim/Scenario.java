package dev.weft.sim;

import dev.weft.plan.Hosts;
import dev.weft.plan.step.Placement;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import java.util.List;
import java.util.Map;

/**
 * What is priced: one call of an operator, as its ranks have planned it.
 *
 * @param plans of all ranks; may be written as they are asked for
 * @param copiesPerRank about how many copies end at a rank: plans of too many are refused before
 *     they are written
 * @param symmetric whether ranks do the same, unless rows, hosts and wires differ: rank {@code r +
 *     s} does what rank r does, with s added to all rank numbers, and signals keep their words
 * @param hosts how the ranks are placed on nodes; {@link Machine#hosts} gives the machine's default
 * @param columns N of each product, side by side; empty for a gather without a product
 * @param keepGathered whether workers also copy, for the caller, what they multiply out of shards
 * @param workers compute threads per rank, or units of a {@link TileEngine} that multiply (more
 *     than it has add nothing); 0 for the rank's share of the cores, or all units
 * @param slowRanks by rank, the factor by which its products and what its cores move are slower;
 *     other ranks have the machine's speed
 */
public record Scenario(
        List<StepPlan> plans,
        Placement placement,
        long copiesPerRank,
        boolean symmetric,
        Hosts hosts,
        DType aType,
        DType outType,
        List<Long> columns,
        boolean keepGathered,
        int workers,
        Map<Integer, Double> slowRanks) {

    public Scenario {
        columns = List.copyOf(columns);
        slowRanks = Map.copyOf(slowRanks);
        if (hosts.ranks() != placement.ranks().size()) {
            throw new IllegalArgumentException(
                    "hosts of %s ranks for %d ranks: expected as many"
                            .formatted(hosts, placement.ranks().size()));
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

    public int ranks() {
        return hosts.ranks();
    }
}
