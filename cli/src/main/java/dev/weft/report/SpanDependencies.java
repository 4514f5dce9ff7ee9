package dev.weft.report;

import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;

/**
 * Which transfers released which spans of a call: a product of rows needs the chunks that brought
 * them, and so does a rank that passes a chunk on. If sums of products travel, a transfer also
 * needs the product, as does a GPU that rounds sums on a track of their own, and rows reach a rank
 * more than once: what began later released nothing. Immutable and thread-safe.
 */
public final class SpanDependencies {

    private static final int[] NONE = {};

    private final CallSpans call;

    /** Where rows arrive and which rank owns them. */
    private record Place(int rank, int source) {}

    private final Map<Place, ByRow> arrivals = new HashMap<>();

    /** Products that are summed. */
    private final Map<Place, ByRow> products = new HashMap<>();

    /** Numbers of spans, in the end by first row, and the most rows that one of them has. */
    private static final class ByRow {
        private final List<Integer> numbers = new ArrayList<>();
        private long mostRows;
    }

    public SpanDependencies(CallSpans call) {
        this.call = call;
        for (int i = 0; i < call.size(); i++) {
            Timeline.Span span = call.span(i);
            if (span.kind() == Kind.TRANSFER && span.to() >= 0) {
                add(i, new Place(span.to(), span.source()), arrivals);
            } else if (call.summed() && span.kind() == Kind.COMPUTE) {
                add(i, new Place(call.rankOf(i), span.source()), products);
            }
        }
        Comparator<Integer> byRow = Comparator.comparingLong(i -> call.span(i).firstRow());
        arrivals.values().forEach(spans -> spans.numbers.sort(byRow));
        products.values().forEach(spans -> spans.numbers.sort(byRow));
    }

    private void add(int number, Place place, Map<Place, ByRow> to) {
        ByRow spans = to.computeIfAbsent(place, any -> new ByRow());
        spans.numbers.add(number);
        spans.mostRows = Math.max(spans.mostRows, call.span(number).rows());
    }

    /** Numbers of the spans that had to end before this one could begin; empty for own rows. */
    public int[] releasedBy(int number) {
        Timeline.Span span = call.span(number);
        boolean moves = span.kind() == Kind.TRANSFER;
        boolean known = !moves || span.to() >= 0 || call.summed();
        if (!known || !moves && span.kind() != Kind.COMPUTE) {
            return NONE;
        }
        Place place = new Place(moves ? call.senderOf(number) : call.rankOf(number), span.source());
        if (!call.summed()) {
            return landed(arrivals, place, span, moves ? span.chunk() : -1);
        }
        boolean afterProducts = moves || call.isInLane(number);
        return IntStream.concat(
                        IntStream.of(landed(arrivals, place, span, -1)),
                        IntStream.of(afterProducts ? landed(products, place, span, -1) : NONE))
                .filter(i -> call.span(i).startNs() < span.startNs())
                .toArray();
    }

    /**
     * @param chunk the chunk of the transfers, or -1 for any
     */
    private int[] landed(Map<Place, ByRow> from, Place place, Timeline.Span span, int chunk) {
        ByRow spans = from.get(place);
        if (spans == null) {
            return NONE;
        }
        List<Integer> numbers = spans.numbers;
        long end = span.firstRow() + span.rows();
        // Ranges may overlap, so their ends are not sorted: a GPU multiplies tiles of rows that it
        // then rounds at once.
        int first =
                first(
                        numbers.size(),
                        i ->
                                call.span(numbers.get(i)).firstRow() + spans.mostRows
                                        > span.firstRow());
        return numbers.subList(first, numbers.size()).stream()
                .takeWhile(i -> call.span(i).firstRow() < end)
                .filter(i -> endRow(i) > span.firstRow())
                .filter(i -> chunk < 0 || call.span(i).chunk() == chunk)
                .mapToInt(Integer::intValue)
                .toArray();
    }

    private long endRow(int number) {
        return call.span(number).firstRow() + call.span(number).rows();
    }

    /** The first of {@code count} places for which {@code holds} is true, as for all later ones. */
    private static int first(int count, IntPredicate holds) {
        int low = 0;
        int high = count;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (holds.test(middle)) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return low;
    }
}
