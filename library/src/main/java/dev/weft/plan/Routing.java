package dev.weft.plan;

import dev.weft.plan.Chunks.RowBlock;
import java.util.List;

/**
 * How an algorithm assigns segments to lanes. The cost of one rank's view is what passes there.
 * Pure.
 */
interface Routing {

    /** Whether receivers get what comes to them; otherwise senders put it. */
    boolean pulls();

    /** What lane {@code lane} of {@code rank} carries, in order; may be empty. */
    List<Hop> lane(int rank, int lane);

    /** What every lane that reaches {@code rank} brings to it; none is empty. */
    List<Delivery> deliveries(int rank);

    /** The order in which {@code rank} multiplies row blocks, given its {@link #deliveries}. */
    default List<RowBlock> consumption(Chunks chunks, int rank, List<Delivery> deliveries) {
        return ConsumptionOrder.asDelivered(chunks, rank, deliveries);
    }

    /**
     * What one lane brings to one rank, in delivery order.
     *
     * @param lane index of the lane in the plan of the rank that initiates it
     * @param rowsBefore rows that the lane carries to other ranks before its first hop to this one
     */
    record Delivery(int lane, long rowsBefore, List<Hop> hops) {}

    /**
     * The transfer of a segment, or of a single chunk, between two ranks.
     *
     * @param segment -1 for a single chunk
     * @param chunk -1 for all chunks of the segment
     * @param pulled whether the receiver gets it; otherwise the sender puts it
     */
    record Hop(int from, int to, int source, int segment, int chunk, boolean pulled) {

        /** A hop of all chunks of a segment, by one lane. */
        static Hop ofSegment(int from, int to, int source, int segment, boolean pulled) {
            return new Hop(from, to, source, segment, -1, pulled);
        }

        /** A hop of one chunk, straight from its owner. */
        static Hop ofChunk(int owner, int to, int chunk, boolean pulled) {
            return new Hop(owner, to, owner, -1, chunk, pulled);
        }

        /** The part of this hop that is one chunk. */
        Hop ofOne(int only) {
            return new Hop(from, to, source, -1, only, pulled);
        }

        /** The rank whose lane carries it. */
        int initiator() {
            return pulled ? to : from;
        }

        /** Whether the chunk must first have arrived at {@link #from}. */
        boolean isForward() {
            return from != source;
        }

        int firstChunk(Chunks chunks) {
            return chunk >= 0 ? chunk : chunks.firstChunkOfSegment(source, segment);
        }

        int endChunk(Chunks chunks) {
            return chunk >= 0 ? chunk + 1 : chunks.firstChunkOfSegment(source, segment + 1);
        }
    }
}
