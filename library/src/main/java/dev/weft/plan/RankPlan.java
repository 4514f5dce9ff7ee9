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
        IN_PLACE,
        /**
         * Chunks are rows of C that hold fp32 sums over some ranks' K, and shards say whose rows
         * they are ({@link Reduction}). {@link Transfer#slot} says what arrives: {@link
         * Reduction#PARTIAL} sums to go on from, {@link Reduction#WHOLE} ones, or those that are to
         * be added.
         */
        SUMS,
        /**
         * As {@link #SUMS}, but a rank sums rows over the parts of K of all ranks of its host, out
         * of their memory.
         */
        SUMS_IN_PLACE
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

    /** Whether products are summed over ranks; otherwise A is gathered. */
    public boolean isSummed() {
        return storage == Storage.SUMS || storage == Storage.SUMS_IN_PLACE;
    }

    /**
     * The programs of the rank, L. Each multiplies its own row blocks, in their order, whatever the
     * others do.
     */
    public int programs() {
        return 1 + consumption.stream().mapToInt(RowBlock::program).max().orElse(0);
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

    /** Whether products of this rank are summed over the part of K that {@code other} has. */
    public boolean sumsFor(int other, Hosts hosts) {
        return other == rank || storage == Storage.SUMS_IN_PLACE && hosts.shareMemory(rank, other);
    }

    /** Blocks whose sums this rank adds up, its own among them or not, in the order of arrival. */
    public List<RowBlock> added() {
        return arriving(Reduction.slotOf(0), Integer.MAX_VALUE);
    }

    /** Blocks whose sums come to this rank when they are whole, in the order of arrival. */
    public List<RowBlock> arrivingWhole() {
        return arriving(Reduction.WHOLE, Reduction.WHOLE);
    }

    private List<RowBlock> arriving(int firstSlot, int lastSlot) {
        return arrivals.stream()
                .flatMap(lane -> lane.transfers().stream())
                .filter(t -> t.slot() >= firstSlot && t.slot() <= lastSlot)
                .map(t -> chunks.block(t.source(), t.chunk()))
                .distinct()
                .toList();
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

    /** An ordered list of transfers that one communication worker executes one after the other. */
    public record Lane(int index, List<Transfer> transfers) {

        public Lane {
            transfers = List.copyOf(transfers);
        }
    }

    /**
     * The unit of consumption: rows of one shard that are multiplied in one go, once every chunk
     * that covers them has arrived.
     *
     * @param source the rank that owns the shard
     * @param firstRow relative to the shard
     * @param firstChunk first of the {@code chunkCount} consecutive chunks that cover the rows
     * @param program which of the rank's programs multiplies it; 0 where it has but one
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
     * One chunk's way from one rank to another, a single record seen from both ends: one-sided
     * memory puts or gets and then signals, two-sided messages post at both ends under {@code tag},
     * copy streams order it.
     *
     * @param from the rank that holds the chunk and sends it
     * @param to the rank that receives it
     * @param source the rank whose shard the chunk belongs to; where it is not {@code from}, the
     *     transfer forwards, and may start only once the chunk has arrived at {@code from}
     * @param chunk number of the chunk within the source's shard
     * @param tag number of the chunk among all shards' chunks; also the index of its progress flag
     * @param initiator the end whose lane carries it
     * @param slot where it lands at {@code to}: the source's place in gathered A, or the number of
     *     a ping-pong buffer
     * @param credit how many remote shards {@code to} must have released in this call before the
     *     slot may be written; 0 where every shard has a place of its own. Shards are released in
     *     the receiver's {@link RankPlan#releases order}, when their rows are consumed and
     *     forwarded; an empty shard counts as released as soon as every shard before it is
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
