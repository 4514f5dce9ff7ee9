package dev.weft.report;

import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.TreeMap;

/**
 * What went from which rank to which.
 *
 * @param inPlace whether nothing was moved because ranks read each other's rows in place
 */
public record Links(int ranks, boolean inPlace, List<Link> links) {

    /**
     * @param transfers chunks moved, or blocks of rows read in place
     * @param busyNs total time of all transfers; 0 if rows are read in place
     */
    public record Link(int from, int to, long bytes, long transfers, long busyNs) {

        Link plus(Link other) {
            return new Link(
                    from,
                    to,
                    bytes + other.bytes,
                    transfers + other.transfers,
                    busyNs + other.busyNs);
        }
    }

    public Links {
        links = List.copyOf(links);
    }

    public long bytes() {
        return links.stream().mapToLong(Link::bytes).sum();
    }

    /**
     * @param bytesPerRow the bytes of a row of A
     */
    public static Links of(CallSpans call, double bytesPerRow) {
        // Several workers may read a row, each for its part of the columns.
        double bytesPerRead = bytesPerRow / call.columnParts();
        List<Link> moved = new ArrayList<>();
        List<Link> read = new ArrayList<>();
        for (int i = 0; i < call.size(); i++) {
            Timeline.Span span = call.span(i);
            int rank = call.rankOf(i);
            if (span.kind() == Kind.TRANSFER && span.to() >= 0) {
                long ns = span.endNs() - span.startNs();
                moved.add(new Link(call.senderOf(i), span.to(), span.bytes(), 1, ns));
            } else if (span.kind() == Kind.COMPUTE && span.source() != rank) {
                long bytes = Math.round(span.rows() * bytesPerRead);
                read.add(new Link(span.source(), rank, bytes, 1, 0));
            }
        }
        boolean inPlace = moved.isEmpty();
        return new Links(call.worldSize(), inPlace, sums(inPlace ? read : moved));
    }

    /** One link for each pair of ranks, by sender and receiver. */
    private static List<Link> sums(List<Link> links) {
        Comparator<Link> byEnds = Comparator.comparingInt(Link::from).thenComparingInt(Link::to);
        TreeMap<Link, Link> sums = new TreeMap<>(byEnds);
        links.forEach(link -> sums.merge(link, link, Link::plus));
        return List.copyOf(sums.values());
    }
}
