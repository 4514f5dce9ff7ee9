package dev.weft.plan;

/**
 * One chunk's way from one rank to another, a single record seen from both ends: one-sided memory
 * puts or gets and then signals, two-sided messages post at both ends under {@code tag}, copy
 * streams order it.
 *
 * @param from the rank that holds the chunk and sends it
 * @param to the rank that receives it
 * @param source the rank whose shard the chunk belongs to; where it is not {@code from}, the
 *     transfer forwards, and may start only once the chunk has arrived at {@code from}
 * @param chunk number of the chunk within the source's shard
 * @param tag number of the chunk among all shards' chunks; also the index of its progress flag
 * @param initiator the end whose lane carries it
 * @param slot where it lands at {@code to}: the source's place in gathered A, or the number of a
 *     ping-pong buffer
 * @param credit how many remote shards {@code to} must have released in this call before the slot
 *     may be written; 0 where every shard has a place of its own. Shards are released in the
 *     receiver's {@link RankPlan#releases order}, when their rows are consumed and forwarded; an
 *     empty shard counts as released as soon as every shard before it is
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
