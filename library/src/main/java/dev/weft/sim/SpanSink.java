package dev.weft.sim;

/** Receives what simulated ranks do, as each span ends. */
@FunctionalInterface
public interface SpanSink {

    /** What a rank does in a span. */
    enum Activity {
        WAIT,
        TRANSFER,
        COMPUTE
    }

    /**
     * A span, as in the timeline of an executed call; times are since the call's start.
     *
     * @param peer the other end of a copy; whoever was waited for
     * @param to where a copy ends; otherwise -1
     * @param firstRow of the whole matrix
     * @param firstCol where a copied rectangle begins in its rows
     */
    record Span(
            Activity kind,
            int peer,
            int to,
            long firstRow,
            long rows,
            long firstCol,
            long bytes,
            double startNs,
            double endNs) {}

    /** Tracks are named {@code lane-0} or {@code compute-0}, as in executed calls. */
    void span(int rank, String track, Span span);
}
