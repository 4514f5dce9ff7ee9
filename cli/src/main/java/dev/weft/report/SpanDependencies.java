package dev.weft.report;

import dev.weft.op.Timeline;
import dev.weft.op.Timeline.Kind;
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
 * needs the product, and rows reach a rank more than once: what began later released nothing.
 * Immutable and thread-safe.
 */
public final class SpanDependencies {

    private static final int[] NONE = {};

    private final CallSpans call;

    /** Where rows arrive and which rank owns them. */
    private record Place(int rank, int source) {}

    /** Numbers of transfers, by first row. */
    private final Map<Place, List<Integer>> arrivals = new HashMap<>();

    /** Numbers of products that are summed, by first row. */
    private final Map<Place, List<Integer>> products = new HashMap<>();

    /** By number: the span's rank. */
    private final int[] rankOf;

    public SpanDependencies(CallSpans call) {
        this.call = call;
        this.rankOf = new int[call.size()];
        for (CallSpans.RankSpans rank : call.ranks()) {
            int count = rank.tracks().stream().mapToInt(track -> track.spans().size()).sum();
            for (int i = rank.firstSpan(); i < rank.firstSpan() + count; i++) {
                rankOf[i] = rank.rank();
                Timeline.Span span = call.span(i);
                if (span.kind() == Kind.TRANSFER && span.to() >= 0) {
                    arrivals.computeIfAbsent(
                                    new Place(span.to(), span.source()), place -> new ArrayList<>())
                            .add(i);
                } else if (call.summed() && span.kind() == Kind.COMPUTE) {
                    products.computeIfAbsent(
                                    new Place(rank.rank(), span.source()),
                                    place -> new ArrayList<>())
                            .add(i);
                }
            }
        }
        Comparator<Integer> byRow = Comparator.comparingLong(i -> call.span(i).firstRow());
        arrivals.values().forEach(numbers -> numbers.sort(byRow));
        products.values().forEach(numbers -> numbers.sort(byRow));
    }

    public int rankOf(int number) {
        return rankOf[number];
    }

    /** The rank whose rows a transfer moves. */
    int senderOf(int number) {
        Timeline.Span span = call.span(number);
        return span.to() == rankOf[number] ? span.peer() : rankOf[number];
    }

    /** Numbers of the spans that had to end before this one could begin; empty for own rows. */
    public int[] releasedBy(int number) {
        Timeline.Span span = call.span(number);
        if (call.summed()) {
            return sumsReleasing(number, span);
        }
        return switch (span.kind()) {
            case COMPUTE -> landed(arrivals, new Place(rankOf[number], span.source()), span, -1);
            case TRANSFER ->
                    span.to() < 0
                            ? NONE
                            : landed(
                                    arrivals,
                                    new Place(senderOf(number), span.source()),
                                    span,
                                    span.chunk());
            case STAGE, WAIT -> NONE;
        };
    }

    private int[] sumsReleasing(int number, Timeline.Span span) {
        boolean moves = span.kind() == Kind.TRANSFER;
        if (!moves && span.kind() != Kind.COMPUTE) {
            return NONE;
        }
        Place place = new Place(moves ? senderOf(number) : rankOf[number], span.source());
        return IntStream.concat(
                        IntStream.of(landed(arrivals, place, span, -1)),
                        IntStream.of(moves ? landed(products, place, span, -1) : NONE))
                .filter(i -> call.span(i).startNs() < span.startNs())
                .toArray();
    }

    /**
     * @param chunk the chunk of the transfers, or -1 for any
     */
    private int[] landed(
            Map<Place, List<Integer>> from, Place place, Timeline.Span span, int chunk) {
        List<Integer> numbers = from.get(place);
        if (numbers == null) {
            return NONE;
        }
        long end = span.firstRow() + span.rows();
        // Ranges of rows are the same (adjacent chunks) or do not overlap, so ends are sorted too.
        int first = first(numbers.size(), i -> endRow(numbers.get(i)) > span.firstRow());
        return numbers.subList(first, numbers.size()).stream()
                .takeWhile(i -> call.span(i).firstRow() < end)
                .filter(i -> chunk < 0 || call.span(i).chunk() == chunk)
                .mapToInt(Integer::intValue)
                .toArray();
    }

    private long endRow(int number) {
        return call.span(number).firstRow() + call.span(number).rows();
    }

    /** The first of {@code count} places for which {@code holds} is true, as for all later ones. */
    static int first(int count, IntPredicate holds) {
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
