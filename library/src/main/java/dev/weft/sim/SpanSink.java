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

    /** As a span of an executed call's timeline; times are since the call's start. */
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
