package dev.weft.trace;

import dev.weft.json.JsonField;
import java.util.List;

/**
 * What one rank did in one call, span by span. Times are nanoseconds since the call's start; on one
 * host, {@link #startNs()} of all processes use the same clock.
 *
 * @param rank in the group
 * @param startNs the call's start, by {@link System#nanoTime()}, or relative to an origin that the
 *     caller chose
 * @param elapsedNs from start until product and transfers were done
 */
public record Timeline(int rank, long startNs, long elapsedNs, List<Track> tracks) {

    /** A copy with its start relative to {@code originNs}. */
    public Timeline since(long originNs) {
        return new Timeline(rank, startNs - originNs, elapsedNs, tracks);
    }

    /** The kind of a span. */
    public enum Kind {
        /** Copying the rank's own shard, to memory that peers can reach or to gathered A. */
        STAGE,
        /** Blocked until a peer's signal. */
        WAIT,
        /** Moving a chunk. */
        TRANSFER,
        /** Multiplying a row block. */
        COMPUTE
    }

    /** One worker: a lane of transfers or a compute worker. */
    public record Track(String name, @JsonField(lines = true) List<Span> spans) {}

    /**
     * @param source the rank whose rows the span is about
     * @param peer the other end of a transfer, the rank that a wait is for, otherwise this rank
     * @param to the rank that receives a transfer, this rank or {@code peer}; otherwise -1
     * @param chunk the chunk, by its number in the source's shard, that a transfer moves; -1 if the
     *     span is not about a single one
     * @param firstRow relative to the source's shard
     * @param bytes the bytes that a transfer moves, otherwise 0
     * @param estimated whether its times were not measured, but follow from others
     */
    public record Span(
            Kind kind,
            @JsonField(most = MOST_RANKS) int source,
            @JsonField(most = MOST_RANKS) int peer,
            @JsonField(least = -1, most = MOST_RANKS, omitted = true) int to,
            @JsonField(least = -1, omitted = true) int chunk,
            long firstRow,
            long rows,
            @JsonField(omitted = true) long bytes,
            long startNs,
            long endNs,
            @JsonField(omitted = true) boolean estimated) {

        /** Read by annotations only. */
        @SuppressWarnings("UnusedVariable")
        private static final int MOST_RANKS = 1 << 20;

        /** A span whose times were measured. */
        public Span(
                Kind kind,
                int source,
                int peer,
                int to,
                int chunk,
                long firstRow,
                long rows,
                long bytes,
                long startNs,
                long endNs) {
            this(kind, source, peer, to, chunk, firstRow, rows, bytes, startNs, endNs, false);
        }

        /** A span that moves nothing to another rank. */
        public static Span local(
                Kind kind, int source, int peer, long firstRow, long rows, long start, long end) {
            return new Span(kind, source, peer, -1, -1, firstRow, rows, 0, start, end);
        }

        /** The same span, with times that are estimated. */
        public Span asEstimated() {
            return new Span(
                    kind, source, peer, to, chunk, firstRow, rows, bytes, startNs, endNs, true);
        }
    }
}
