package dev.weft.report;

import dev.weft.op.Timeline;
import dev.weft.op.Timeline.Kind;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.TreeMap;

/**
 * The gather as it happened: what went from which rank to which.
 *
 * @param inPlace whether nothing was moved and ranks read each other's rows where they lie
 */
public record Links(int ranks, boolean inPlace, List<Link> links) {

    /**
     * @param transfers chunks moved, or blocks of rows read in place
     * @param busyNs time of all transfers together; 0 where rows are read in place
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
     * @param bytesPerRow of A
     */
    public static Links of(CallSpans call, SpanDependencies releases, double bytesPerRow) {
        Sums moved = new Sums();
        Sums read = new Sums();
        for (int i = 0; i < call.size(); i++) {
            Timeline.Span span = call.span(i);
            int rank = releases.rankOf(i);
            if (span.kind() == Kind.TRANSFER && span.to() >= 0) {
                long ns = span.endNs() - span.startNs();
                moved.add(new Link(releases.senderOf(i), span.to(), span.bytes(), 1, ns));
            } else if (span.kind() == Kind.COMPUTE && span.source() != rank) {
                long bytes = Math.round(span.rows() * bytesPerRow);
                read.add(new Link(span.source(), rank, bytes, 1, 0));
            }
        }
        boolean inPlace = moved.links().isEmpty();
        return new Links(call.worldSize(), inPlace, List.copyOf((inPlace ? read : moved).links()));
    }

    /** By sender and receiver. */
    private static final class Sums {

        private record Ends(int from, int to) {}

        private final TreeMap<Ends, Link> sums =
                new TreeMap<>(Comparator.comparingInt(Ends::from).thenComparingInt(Ends::to));

        void add(Link link) {
            sums.merge(new Ends(link.from(), link.to()), link, Link::plus);
        }

        Collection<Link> links() {
            return sums.values();
        }
    }
}
