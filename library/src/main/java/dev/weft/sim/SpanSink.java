package dev.weft.sim;

/** Receives what simulated ranks do, as each span ends. */
@FunctionalInterface
public interface SpanSink {

    /** The kind of a span. */
    enum Kind {
        WAIT,
        TRANSFER,
        COMPUTE
    }

    /** A span, as in the timeline of an executed call; times are since the call's start. */
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

    /** Tracks are named {@code lane-0} or {@code compute-0}, as in executed calls. */
    void span(int rank, String track, Span span);
}
