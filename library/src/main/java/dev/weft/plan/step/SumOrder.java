package dev.weft.plan.step;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;

/**
 * The order in which an element of C is summed. Two elements with equal orders have sums of the
 * same bits, given the same rows of A and columns of B.
 */
public sealed interface SumOrder {

    /**
     * Sums over k in order.
     *
     * @param before the sums that it goes on from; null if it starts from zero
     */
    record Over(SumOrder before, long firstK, long endK) implements SumOrder {

        @Override
        public List<Over> ranges() {
            List<Over> ranges = new ArrayList<>(before == null ? List.of() : before.ranges());
            ranges.add(this);
            return ranges;
        }

        @Override
        public Promise promise() {
            return before == null ? Promise.AS_ON_ONE_RANK : Promise.OWN;
        }

        @Override
        public String text() {
            String own = "k %d..%d".formatted(firstK, endK);
            return before == null ? own : before.text() + ", then " + own;
        }
    }

    /** Sums added from the first to the last, at least two. */
    record Added(List<SumOrder> sums) implements SumOrder {

        public Added {
            sums = List.copyOf(sums);
        }

        @Override
        public List<Over> ranges() {
            return sums.stream().flatMap(sum -> sum.ranges().stream()).toList();
        }

        @Override
        public Promise promise() {
            if (ascend(sums)) {
                return Promise.BY_PARTS;
            }
            boolean rounded = sums.stream().allMatch(Rounded.class::isInstance);
            return rounded && ascend(sums.stream().map(sum -> ((Rounded) sum).sums).toList())
                    ? Promise.BY_PARTS_ROUNDED
                    : Promise.OWN;
        }

        private static boolean ascend(List<SumOrder> sums) {
            long end = 0;
            for (SumOrder sum : sums) {
                if (!(sum instanceof Over over) || over.before != null || over.firstK != end) {
                    return false;
                }
                end = over.endK;
            }
            return true;
        }

        @Override
        public String text() {
            return sums.stream()
                    .map(sum -> "(" + sum.text() + ")")
                    .collect(Collectors.joining(" + "));
        }
    }

    /** Sums rounded to bf16. */
    record Rounded(SumOrder sums) implements SumOrder {

        @Override
        public List<Over> ranges() {
            return sums.ranges();
        }

        @Override
        public Promise promise() {
            return Promise.OWN;
        }

        @Override
        public String text() {
            return "bf16(" + sums.text() + ")";
        }
    }

    /** What an order promises about the bits of C. */
    enum Promise {
        /** Those of the whole product on one rank, at any number of ranks. */
        AS_ON_ONE_RANK,
        /** Those of parts of k, each from zero, added in the order of k. */
        BY_PARTS,
        /** Like {@link #BY_PARTS}, each part rounded before it is added. */
        BY_PARTS_ROUNDED,
        /** Those of this order alone. */
        OWN
    }

    /** Goes on over further k; joins what follows directly. */
    static SumOrder over(SumOrder before, long firstK, long endK) {
        if (firstK == endK && before != null) {
            return before;
        }
        return before instanceof Over last && last.endK == firstK
                ? new Over(last.before, last.firstK, endK)
                : new Over(before, firstK, endK);
    }

    /** Adds from the first to the last; sums that come first may be added up already. */
    static SumOrder added(List<SumOrder> sums) {
        if (sums.size() == 1) {
            return sums.getFirst();
        }
        List<SumOrder> flat = new ArrayList<>(sums);
        if (flat.getFirst() instanceof Added first) {
            flat.removeFirst();
            flat.addAll(0, first.sums);
        }
        return new Added(flat);
    }

    /** Whether every k from 0 on is summed exactly once. */
    default boolean isWhole(long k) {
        List<Over> ranges = new ArrayList<>(ranges());
        ranges.sort(Comparator.comparingLong(Over::firstK).thenComparingLong(Over::endK));
        long end = 0;
        for (Over range : ranges) {
            if (range.firstK != end) {
                return false;
            }
            end = range.endK;
        }
        return end == k;
    }

    /** The ranges of k that it sums over, in any order. */
    List<Over> ranges();

    /** What it promises if it {@link #isWhole is whole}. */
    Promise promise();

    /** For people to read: {@code (k 0..5) + (k 5..9)}. */
    String text();
}
