package dev.weft.sim;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.tensor.DType;
import java.util.List;
import java.util.Map;

/**
 * What is to be priced: one call of an operator, as its ranks have planned it.
 *
 * @param algorithm not {@link Algorithm#AUTO}
 * @param pingPong a ring that keeps no gathered A
 * @param lanes communication workers per rank, as {@link dev.weft.plan.Planner#plan} takes them
 * @param hosts how the ranks lie on nodes; {@link Machine#hosts} gives the machine's own way
 * @param columns N of each product; none for a gather alone
 * @param keepGathered whether gathered A is left for the caller
 * @param workers compute threads per rank; 0 for its share of the cores. Of no concern to a {@link
 *     TileEngine}
 * @param slowRanks how many times as long a rank takes for its products and for what its cores
 *     move; ranks that are not named take the machine's time
 */
public record Scenario(
        Algorithm algorithm,
        boolean pingPong,
        Chunks chunks,
        int lanes,
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
        if (algorithm == Algorithm.AUTO) {
            throw new IllegalArgumentException(
                    "auto has no plan to price: expected the algorithm it stands for");
        }
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
                                "rank "
                                        + rank
                                        + " "
                                        + factor
                                        + " times as slow: expected one of "
                                        + hosts.ranks()
                                        + " ranks and a positive factor");
                    }
                });
    }

    public int ranks() {
        return hosts.ranks();
    }
}
