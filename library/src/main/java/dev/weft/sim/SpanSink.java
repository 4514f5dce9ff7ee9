package dev.weft.sim;

/** Is told what simulated ranks do, as it ends. */
@FunctionalInterface
public interface SpanSink {

    /** What a span is. */
    enum Kind {
        WAIT,
        TRANSFER,
        COMPUTE
    }

    /**
     * @param source the rank whose rows the span is about
     * @param peer the other end of a transfer, whom a wait is for, otherwise this rank
     * @param to the rank that receives what a transfer moves, otherwise -1
     * @param chunk number of the chunk in the source's shard that a lane moves, otherwise -1
     * @param firstRow relative to the source's shard
     * @param bytes that a transfer moves, otherwise 0
     * @param startNs since the start of the call
     */
    record Span(
            Kind kind,
            int source,
            int peer,
            int to,
            int chunk,
            long firstRow,
            long rows,
            long bytes,
            double startNs,
            double endNs) {}

    /** Tracks are called {@code lane-0} or {@code compute-0}, as those of executed calls. */
    void span(int rank, String track, Span span);
}
