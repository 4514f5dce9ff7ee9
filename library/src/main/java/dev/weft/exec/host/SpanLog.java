package dev.weft.exec.host;

import dev.weft.trace.Timeline;
import java.util.ArrayList;
import java.util.List;

/**
 * One worker's spans of the running call, in preallocated arrays. Recording costs two clock reads
 * and ten stores and allocates nothing, so it is always on. Only the worker writes it; it is read
 * once the call has ended.
 */
public final class SpanLog {

    private final String name;
    private final Timeline.Kind[] kinds;
    private final int[] sources;
    private final int[] peers;
    private final int[] receivers;
    private final int[] chunks;
    private final long[] firstRows;
    private final long[] rowCounts;
    private final long[] bytes;
    private final long[] starts;
    private final long[] ends;
    private int size;

    public SpanLog(String name, int capacity) {
        this.name = name;
        kinds = new Timeline.Kind[capacity];
        sources = new int[capacity];
        peers = new int[capacity];
        receivers = new int[capacity];
        chunks = new int[capacity];
        firstRows = new long[capacity];
        rowCounts = new long[capacity];
        bytes = new long[capacity];
        starts = new long[capacity];
        ends = new long[capacity];
    }

    String name() {
        return name;
    }

    public void clear() {
        size = 0;
    }

    /** Records a span that moves nothing, began at {@code startNs} and ends now. */
    public void add(
            Timeline.Kind kind, int source, int peer, long firstRow, long rows, long startNs) {
        add(kind, source, peer, -1, -1, firstRow, rows, 0, startNs, System.nanoTime());
    }

    public void add(
            Timeline.Kind kind,
            int source,
            int peer,
            int to,
            int chunk,
            long firstRow,
            long rows,
            long movedBytes,
            long startNs,
            long endNs) {
        int at = size++;
        kinds[at] = kind;
        sources[at] = source;
        peers[at] = peer;
        receivers[at] = to;
        chunks[at] = chunk;
        firstRows[at] = firstRow;
        rowCounts[at] = rows;
        bytes[at] = movedBytes;
        starts[at] = startNs;
        ends[at] = endNs;
    }

    public Timeline.Track track(long originNs) {
        List<Timeline.Span> spans = new ArrayList<>(size);
        for (int i = 0; i < size; i++) {
            spans.add(
                    new Timeline.Span(
                            kinds[i],
                            sources[i],
                            peers[i],
                            receivers[i],
                            chunks[i],
                            firstRows[i],
                            rowCounts[i],
                            bytes[i],
                            sinceNs(starts[i], originNs),
                            sinceNs(ends[i], originNs)));
        }
        return new Timeline.Track(name, spans);
    }

    /** A GPU's call begins, by its own clock, some microseconds after the host's threads do. */
    private static long sinceNs(long ns, long originNs) {
        return Math.max(0, ns - originNs);
    }
}
