package dev.weft.plan;

import java.util.List;

/**
 * All that one rank does in one call.
 *
 * @param name under which the plan was written, for people to read: {@link Algorithm#label} or
 *     another writer's; nothing depends on it
 * @param rank this rank's number in its group
 * @param lanes the transfers that this rank initiates
 * @param arrivals the lanes, its own or its peers', that deliver to this rank, each reduced to the
 *     transfers that end here and in delivery order; none of them is empty, and each keeps the
 *     index that it has in the plan of the rank that initiates it
 * @param consumption row blocks in the order in which they are multiplied: own rows first, then
 *     others in the order in which the lanes deliver them; any order where the gather comes first
 * @param releases the other ranks in the order in which their shards are released; none unless the
 *     storage is {@link Storage#PING_PONG}
 * @param pacing how products keep pace with arrivals
 */
public record RankPlan(
        String name,
        Storage storage,
        int rank,
        Chunks chunks,
        List<Lane> lanes,
        List<Lane> arrivals,
        List<RowBlock> consumption,
        List<Integer> releases,
        Pacing pacing) {

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
        releases = List.copyOf(releases);
    }

    /** The plans of all ranks as lines that a person can read. */
    public static List<String> describe(List<RankPlan> plans) {
        return PlanText.of(plans);
    }

    /** A number by which ranks compare the plans of all of them, without their names. */
    public static long digest(List<RankPlan> plans) {
        return PlanDigest.of(plans);
    }

    public int ranks() {
        return chunks.shards().ranks();
    }

    /**
     * By source: the number of its shard among those that are released, 1 for the first; 0 for the
     * rank's own shard, and for all where nothing is released.
     */
    public int[] releaseNumbers() {
        int[] numbers = new int[ranks()];
        for (int i = 0; i < releases.size(); i++) {
            numbers[releases.get(i)] = i + 1;
        }
        return numbers;
    }

    /** This plan with other lanes and what arrives by them. */
    public RankPlan withLanes(List<Lane> newLanes, List<Lane> newArrivals) {
        return new RankPlan(
                name, storage, rank, chunks, newLanes, newArrivals, consumption, releases, pacing);
    }

    /** This plan with another order of consumption. */
    public RankPlan withConsumption(List<RowBlock> order) {
        return new RankPlan(name, storage, rank, chunks, lanes, arrivals, order, releases, pacing);
    }

    /** This plan, by that name, with products at another pace. */
    public RankPlan with(String newName, Pacing newPacing) {
        return new RankPlan(
                newName, storage, rank, chunks, lanes, arrivals, consumption, releases, newPacing);
    }

    /** Row blocks with own rows first and then one source after the other, from the next on. */
    public List<RowBlock> consumptionBySource() {
        return ConsumptionOrder.rotated(chunks, rank);
    }
}
