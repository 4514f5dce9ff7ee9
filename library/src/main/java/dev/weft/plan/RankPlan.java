package dev.weft.plan;

import java.util.List;

/**
 * Everything that one rank does in one call.
 *
 * @param name the name under which the plan was written, for people to read: {@link
 *     Algorithm#label} or another writer's; nothing depends on it
 * @param rank this rank's number in its group
 * @param lanes the transfers that this rank initiates
 * @param arrivals the lanes, its own or its peers', that deliver to this rank, each reduced to the
 *     transfers that end here, in delivery order; none is empty, and each keeps its index in the
 *     plan of the rank that initiates it
 * @param consumption row blocks in the order in which they are multiplied: own rows first, then
 *     others in the order in which the lanes deliver them; any order if the gather comes first
 * @param releases the other ranks in the order in which their shards are released; empty unless the
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
        /** Two buffers of one shard each, used in turn: gathered A is never stored. */
        PING_PONG,
        /** Nothing arrives: rows are read from their owner's memory. */
        IN_PLACE,
        /** Chunks are rows of C; what is done with them is in the steps of a reduction. */
        SUMS
    }

    public RankPlan {
        lanes = List.copyOf(lanes);
        arrivals = List.copyOf(arrivals);
        consumption = List.copyOf(consumption);
        releases = List.copyOf(releases);
    }

    /** The plans of all ranks as readable lines. */
    public static List<String> describe(List<RankPlan> plans) {
        return PlanText.of(plans);
    }

    /** A number by which ranks compare the plans of all of them; names do not matter. */
    public static long digest(List<RankPlan> plans) {
        return PlanDigest.of(plans);
    }

    public int ranks() {
        return chunks.shards().ranks();
    }

    /**
     * The number of programs of the rank. Each multiplies its own row blocks in order,
     * independently of the others.
     */
    public int programs() {
        return 1 + consumption.stream().mapToInt(RowBlock::program).max().orElse(0);
    }

    /**
     * By source: the number of its shard among those that are released, from 1; 0 for the rank's
     * own shard, and for all shards if nothing is released.
     */
    public int[] releaseNumbers() {
        int[] numbers = new int[ranks()];
        for (int i = 0; i < releases.size(); i++) {
            numbers[releases.get(i)] = i + 1;
        }
        return numbers;
    }

    /** This plan with other lanes and their arrivals. */
    public RankPlan withLanes(List<Lane> newLanes, List<Lane> newArrivals) {
        return new RankPlan(
                name, storage, rank, chunks, newLanes, newArrivals, consumption, releases, pacing);
    }

    /** This plan with another order of consumption. */
    public RankPlan withConsumption(List<RowBlock> order) {
        return new RankPlan(name, storage, rank, chunks, lanes, arrivals, order, releases, pacing);
    }

    /** This plan with another name and pacing. */
    public RankPlan with(String newName, Pacing newPacing) {
        return new RankPlan(
                newName, storage, rank, chunks, lanes, arrivals, consumption, releases, newPacing);
    }

    /** Row blocks with own rows first, then one source after the other, from the next rank on. */
    public List<RowBlock> consumptionBySource() {
        return ConsumptionOrder.rotated(chunks, rank);
    }

    /** An ordered list of transfers that one communication worker executes one after the other. */
    public record Lane(int index, List<Transfer> transfers) {

        public Lane {
            transfers = List.copyOf(transfers);
        }
    }

    /**
     * The unit of consumption: rows of one shard that are multiplied together, once every chunk
     * that covers them has arrived.
     *
     * @param source the rank that owns the shard
     * @param firstRow relative to the shard
     * @param firstChunk first of the {@code chunkCount} consecutive chunks that cover the rows
     * @param program which of the rank's programs multiplies it; 0 if it has only one
     */
    public record RowBlock(
            int source, long firstRow, long rows, int firstChunk, int chunkCount, int program) {

        /** A block of a rank with one program. */
        public RowBlock(int source, long firstRow, long rows, int firstChunk, int chunkCount) {
            this(source, firstRow, rows, firstChunk, chunkCount, 0);
        }

        RowBlock by(int newProgram) {
            return new RowBlock(source, firstRow, rows, firstChunk, chunkCount, newProgram);
        }
    }

    /**
     * The transfer of a chunk from one rank to another, one record for both ends: one-sided memory
     * puts or gets and then signals, two-sided messages are posted at both ends with {@code tag},
     * copy streams order it.
     *
     * @param from the rank that holds the chunk and sends it
     * @param to the rank that receives it
     * @param source the rank whose shard the chunk belongs to; if it is not {@code from}, the
     *     transfer forwards, and may start only once the chunk has arrived at {@code from}
     * @param chunk number of the chunk within the source's shard
     * @param tag number of the chunk among all shards' chunks; also the index of its progress flag
     * @param initiator the end whose lane carries it
     * @param slot where it lands at {@code to}: the source's place in gathered A, or the number of
     *     a ping-pong buffer
     * @param credit how many remote shards {@code to} must have released in this call before the
     *     slot may be written; 0 if every shard has its own place. Shards are released in the
     *     receiver's {@link RankPlan#releases order}, when their rows are consumed and forwarded;
     *     an empty shard counts as released as soon as all shards before it are
     */
    public record Transfer(
            int from,
            int to,
            int source,
            int chunk,
            int tag,
            Initiator initiator,
            int slot,
            int credit) {

        /** The end that moves the bytes of a transfer. */
        public enum Initiator {
            /** The sender puts them into the receiver's memory. */
            SENDER,
            /** The receiver gets them from the sender's memory. */
            RECEIVER
        }

        /** Whether the chunk must first have arrived at {@link #from}. */
        public boolean isForward() {
            return from != source;
        }
    }
}
