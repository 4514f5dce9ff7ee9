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
     * @param track {@code lane-0} or {@code compute-0}, as in a timeline of an executed call
     * @param source the rank whose rows the span is about
     * @param peer the other end of a transfer, otherwise this rank
     * @param firstRow relative to the source's shard
     * @param startNs since the start of the call
     */
    void span(
            int rank,
            String track,
            Kind kind,
            int source,
            int peer,
            long firstRow,
            long rows,
            double startNs,
            double endNs);
}
