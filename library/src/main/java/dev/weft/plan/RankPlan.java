package dev.weft.plan;

import java.util.List;

/**
 * All that one rank does in one call.
 *
 * @param rank this rank's number in its group
 * @param lanes the transfers that this rank initiates
 * @param arrivals the lanes, its own or its peers', that deliver to this rank, each reduced to the
 *     transfers that end here and in delivery order; none of them is empty, and each keeps the
 *     index that it has in the plan of the rank that initiates it
 * @param consumption row blocks in the order in which they are multiplied: own rows first, then
 *     sources in the order in which the lanes deliver them, those of host mates before what crosses
 *     a network; for {@link Algorithm#SEQUENTIAL} all rows in natural order, once everything has
 *     arrived
 */
public record RankPlan(
        Algorithm algorithm,
        Storage storage,
        int rank,
        Chunks chunks,
        List<Lane> lanes,
        List<Lane> arrivals,
        List<RowBlock> consumption) {

    /** Where a rank keeps what arrives. */
    public enum Storage {
        /** Every shard has its own place in a buffer of all rows: gathered A. */
        GATHERED,
        /** Two buffers of one shard each, used in turn: no gathered A exists anywhere. */
        PING_PONG,
        /** Nothing arrives: rows are multiplied out of their owner's memory. */
        IN_PLACE
    }

    public RankPlan {
        lanes = List.copyOf(lanes);
        arrivals = List.copyOf(arrivals);
        consumption = List.copyOf(consumption);
    }

    public int ranks() {
        return chunks.shards().ranks();
    }

    /**
     * The same blocks with own rows first and then one source after the other, from the next on.
     */
    public List<RowBlock> consumptionBySource() {
        return ConsumptionOrder.rotated(chunks, rank);
    }
}
