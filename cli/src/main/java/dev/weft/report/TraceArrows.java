package dev.weft.report;

import dev.weft.op.Timeline;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.ToIntFunction;

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

    private final List<Arrow> byEnd = new ArrayList<>();
    private final List<Arrow> byBeginning;

    TraceArrows(CallSpans call) {
        SpanDependencies releases = new SpanDependencies(call);
        // Rows of one call of several say nothing about those of the next.
        int size = call.calls().isEmpty() ? call.size() : 0;
        for (int number = 0; number < size; number++) {
            long endNs = call.span(number).startNs();
            for (int transfer : releases.releasedBy(number)) {
                Timeline.Span span = call.span(transfer);
                if (span.startNs() <= endNs) {
                    long inside = Math.min(span.endNs(), endNs) - HAIR_NS;
                    long beginNs = Math.max(span.startNs(), inside);
                    byEnd.add(new Arrow(byEnd.size(), transfer, number, beginNs));
                }
            }
        }
        byBeginning = new ArrayList<>(byEnd);
        byBeginning.sort(Comparator.comparingInt(Arrow::from));
    }

    List<Arrow> endingAt(int span) {
        return of(byEnd, Arrow::to, span);
    }

    List<Arrow> beginningAt(int span) {
        return of(byBeginning, Arrow::from, span);
    }

    private static List<Arrow> of(List<Arrow> sorted, ToIntFunction<Arrow> key, int span) {
        return sorted.subList(firstFrom(sorted, key, span), firstFrom(sorted, key, span + 1));
    }

    /** The index of the first arrow whose key is {@code least} or more. */
    private static int firstFrom(List<Arrow> sorted, ToIntFunction<Arrow> key, int least) {
        return SpanDependencies.first(sorted.size(), i -> key.applyAsInt(sorted.get(i)) >= least);
    }
}
