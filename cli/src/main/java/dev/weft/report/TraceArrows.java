package dev.weft.report;

import dev.weft.op.Timeline;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * The arrows of a trace, from transfers to what they released. Arrows that seem to point back in
 * time, because the clocks of hosts differ, are left out. Immutable and thread-safe.
 */
final class TraceArrows {

    /** Makes an arrow begin inside its slice, whatever a viewer's arithmetic loses. */
    private static final long HAIR_NS = 4;

    /**
     * @param from number of the transfer
     * @param to number of the span that it released
     * @param beginNs within the transfer, and not after the start of the other span
     */
    record Arrow(int id, int from, int to, long beginNs) {}

    private final Map<Integer, List<Arrow>> byEnd;
    private final Map<Integer, List<Arrow>> byBeginning;

    TraceArrows(CallSpans call) {
        SpanDependencies releases = new SpanDependencies(call);
        // Rows of one call of several say nothing about those of the next.
        List<Arrow> all = new ArrayList<>();
        int size = call.calls().isEmpty() ? call.size() : 0;
        for (int number = 0; number < size; number++) {
            long endNs = call.span(number).startNs();
            for (int transfer : releases.releasedBy(number)) {
                Timeline.Span span = call.span(transfer);
                if (span.startNs() <= endNs) {
                    long inside = Math.min(span.endNs(), endNs) - HAIR_NS;
                    long beginNs = Math.max(span.startNs(), inside);
                    all.add(new Arrow(all.size(), transfer, number, beginNs));
                }
            }
        }
        byEnd = all.stream().collect(Collectors.groupingBy(Arrow::to));
        byBeginning = all.stream().collect(Collectors.groupingBy(Arrow::from));
    }

    List<Arrow> endingAt(int span) {
        return byEnd.getOrDefault(span, List.of());
    }

    List<Arrow> beginningAt(int span) {
        return byBeginning.getOrDefault(span, List.of());
    }
}
