package dev.weft.plan.step;

import java.util.ArrayList;
import java.util.List;

/**
 * What a collective product is asked to do: which elements of A and B each rank has, and which rows
 * of C = A x B it is to get. A is [rows, k] and B is [k, cols].
 */
public record Placement(long rows, long k, long cols, List<OfRank> ranks) {

    /**
     * What one rank has and gets. Its B has the rows that match its columns of A, and all columns.
     *
     * @param a its rows of A
     * @param k its columns of A, and rows of B; a rank may have more rows of B than columns of A
     * @param b its rows of B
     * @param c its rows of C
     */
    public record OfRank(Range a, Range k, Range b, Range c) {}

    /** Consecutive rows or columns of a whole matrix. */
    public record Range(long first, long count) {

        long end() {
            return first + count;
        }

        private boolean isWithin(long total) {
            return first >= 0 && count >= 0 && end() <= total;
        }
    }

    public Placement {
        ranks = List.copyOf(ranks);
        for (OfRank rank : ranks) {
            if (!rank.a.isWithin(rows)
                    || !rank.k.isWithin(k)
                    || !rank.b.isWithin(k)
                    || !rank.c.isWithin(rows)) {
                throw new IllegalArgumentException(
                        "%s: expected parts of %d rows and %d columns".formatted(rank, rows, k));
            }
        }
    }

    /** The buffers of what a rank's caller passes and gets, in the order of {@link StepPlan}. */
    List<Buffer> buffers(int rank) {
        OfRank of = ranks.get(rank);
        return new ArrayList<>(
                List.of(
                        new Buffer("A", Buffer.Kind.A, true, of.a.count, of.k.count),
                        new Buffer("B", Buffer.Kind.B, true, of.b.count, cols),
                        new Buffer("C", Buffer.Kind.C, true, of.c.count, cols)));
    }
}
