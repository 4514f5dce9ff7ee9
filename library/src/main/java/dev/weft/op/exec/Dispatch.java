package dev.weft.op.exec;

import dev.weft.plan.Shards;
import dev.weft.plan.group.Experts;
import dev.weft.plan.group.RowGroups;
import dev.weft.tensor.Routes;
import java.util.Arrays;
import java.util.BitSet;

/**
 * Works out which rows of a call each expert takes. Every rank does so for the routes of all rows,
 * with the same outcome; a call that must be refused is refused by all. Allocates nothing after it
 * was made. Used by one thread.
 */
public final class Dispatch {

    private static final double GOLDEN_RATIO = 0.6180339887498949;

    private final Experts experts;
    private final int[] counts;
    private final int[] next;
    private final int[] rankOf;

    /** By expert: the least weight that it takes; NaN if it takes all rows. */
    private final float[] least;

    /** By expert: how many rows of just that weight it takes. */
    private final int[] ofLeast;

    private final int[] ofLeastLeft;

    private final float[] sorted;
    private Routes routes;
    private long rows;
    private Shards shards;
    private long dropped;

    /**
     * @param mostRows the most rows of A in a call
     */
    public Dispatch(Experts experts, long mostRows) {
        this.experts = experts;
        this.counts = new int[experts.count()];
        this.next = new int[experts.count()];
        this.rankOf = new int[experts.count()];
        for (int rank = 0; rank < experts.ofRanks().ranks(); rank++) {
            int first = experts.first(rank);
            Arrays.fill(rankOf, first, first + experts.count(rank), rank);
        }
        this.least = new float[experts.count()];
        this.ofLeast = new int[experts.count()];
        this.ofLeastLeft = new int[experts.count()];
        boolean sorts = experts.overflow() == Experts.Overflow.DROP_LIGHTEST;
        this.sorted = new float[sorts ? Math.toIntExact(mostRows) : 0];
    }

    /**
     * Reads the routes of a call, and decides what is dropped.
     *
     * @param all of all rows, shard below shard
     * @throws IllegalArgumentException if a row names an expert that does not exist or twice the
     *     same, or an expert or a rank has more rows than it takes
     */
    public void read(Routes all, Shards ofCall) {
        routes = all;
        rows = ofCall.totalRows();
        shards = ofCall;
        dropped = 0;
        Arrays.fill(counts, 0);
        Arrays.fill(least, Float.NaN);
        for (long row = 0; row < rows; row++) {
            for (int i = 0; i < experts.perRow(); i++) {
                int expert = all.expert(row, i);
                if (expert != Routes.NONE) {
                    check(row, i, expert);
                    counts[expert]++;
                }
            }
        }
        for (int rank = 0; rank < experts.ofRanks().ranks(); rank++) {
            limit(rank);
        }
    }

    private void check(long row, int choice, int expert) {
        if (expert < 0 || expert >= counts.length) {
            throw new IllegalArgumentException(
                    "%s names expert %d: expected 0 to %d, or %d for none"
                            .formatted(name(row), expert, counts.length - 1, Routes.NONE));
        }
        if (Float.isNaN(routes.weight(row, choice))) {
            throw new IllegalArgumentException(
                    "%s has the weight NaN for expert %d: expected a number"
                            .formatted(name(row), expert));
        }
        for (int i = 0; i < choice; i++) {
            if (routes.expert(row, i) == expert) {
                throw new IllegalArgumentException(
                        "%s names expert %d twice: expected different experts"
                                .formatted(name(row), expert));
            }
        }
    }

    private String name(long row) {
        int rank = 0;
        while (row >= shards.firstRow(rank) + shards.rows(rank)) {
            rank++;
        }
        return "row %d of rank %d".formatted(row - shards.firstRow(rank), rank);
    }

    private void limit(int rank) {
        long sum = 0;
        int most = experts.first(rank);
        for (int e = experts.first(rank); e < experts.first(rank) + experts.count(rank); e++) {
            if (experts.mostOfEach() > 0 && counts[e] > experts.mostOfEach()) {
                limitExpert(e, rank);
            }
            sum += counts[e];
            most = counts[e] > counts[most] ? e : most;
        }
        int capacity = experts.capacity(rank, rows);
        if (sum > capacity) {
            throw new IllegalArgumentException(
                    "rank %d gets %d rows, most of them (%d) for expert %d: expected at most %d rows on a rank"
                            .formatted(rank, sum, counts[most], most, capacity));
        }
    }

    private void limitExpert(int expert, int rank) {
        int taken = Math.toIntExact(experts.mostOfEach());
        if (experts.overflow() == Experts.Overflow.REFUSE) {
            throw new IllegalArgumentException(
                    "expert %d of rank %d gets %d rows: expected at most %d"
                            .formatted(expert, rank, counts[expert], taken));
        }
        if (experts.overflow() == Experts.Overflow.DROP_LIGHTEST) {
            int count = weights(expert);
            Arrays.sort(sorted, 0, count);
            least[expert] = sorted[count - taken];
            int from = count - taken;
            while (from < count && sorted[from] == least[expert]) {
                from++;
            }
            ofLeast[expert] = taken - (count - from);
        }
        dropped += counts[expert] - taken;
        counts[expert] = taken;
    }

    private int weights(int expert) {
        int count = 0;
        for (long row = 0; row < rows; row++) {
            for (int i = 0; i < experts.perRow(); i++) {
                if (routes.expert(row, i) == expert) {
                    sorted[count++] = routes.weight(row, i);
                }
            }
        }
        return count;
    }

    /**
     * Fills in rows as if each expert got about as many: for what is measured before there are any
     * routes. Rows that a rank has no memory for are left out.
     */
    public static void spread(
            Experts experts, int rank, Shards shards, RowGroups groups, BitSet[] wanted) {
        int rows = Math.toIntExact(shards.totalRows());
        for (int r = 0; r < wanted.length; r++) {
            double none = 1 - (double) experts.perRow() / experts.count();
            double share = 1 - Math.pow(none, experts.count(r));
            for (int row = 0; row < rows; row++) {
                // Rows are wanted here and there, as with routes.
                wanted[r].set(row, row * GOLDEN_RATIO % 1 < share);
            }
        }
        int[] own = wanted[rank].stream().toArray();
        int[] counts = new int[groups.groups()];
        long each = Math.ceilDiv((long) rows * experts.perRow(), experts.count());
        long left = groups.capacity();
        for (int group = 0; group < counts.length; group++) {
            counts[group] = Math.toIntExact(Math.min(left, Math.min(each, own.length)));
            left -= counts[group];
        }
        groups.begin(shards, counts, 0);
        for (int group = 0; group < counts.length; group++) {
            for (int i = 0; i < counts[group]; i++) {
                int row = own[(int) ((long) own.length * i / counts[group])];
                groups.put(groups.first(group) + i, row, 1);
            }
        }
    }

    /** How many rows an expert takes. */
    public int count(int expert) {
        return counts[expert];
    }

    /** How many rows were dropped, a row for each expert that does not take it. */
    public long dropped() {
        return dropped;
    }

    /** Marks the rows that each rank's experts are named by. */
    public void fill(BitSet[] wanted) {
        for (int rank = 0; rank < wanted.length; rank++) {
            wanted[rank].clear();
        }
        for (long row = 0; row < rows; row++) {
            for (int i = 0; i < experts.perRow(); i++) {
                int expert = routes.expert(row, i);
                if (expert != Routes.NONE) {
                    wanted[rankOf[expert]].set((int) row);
                }
            }
        }
    }

    /** Fills in the rows that the experts of a rank take, a group for each. */
    public void fill(RowGroups groups, int rank) {
        int first = experts.first(rank);
        int end = first + experts.count(rank);
        groups.begin(shards, counts, first);
        for (int e = first; e < end; e++) {
            next[e] = groups.first(e - first);
        }
        boolean byWeight = experts.overflow() == Experts.Overflow.DROP_LIGHTEST;
        System.arraycopy(ofLeast, 0, ofLeastLeft, 0, ofLeast.length);
        for (long row = 0; row < rows; row++) {
            for (int i = 0; i < experts.perRow(); i++) {
                int e = routes.expert(row, i);
                if (e < first || e >= end || next[e] == groups.first(e - first) + counts[e]) {
                    continue;
                }
                float weight = routes.weight(row, i);
                if (byWeight && !Float.isNaN(least[e])) {
                    if (weight < least[e] || weight == least[e] && ofLeastLeft[e]-- <= 0) {
                        continue;
                    }
                }
                groups.put(next[e]++, (int) row, weight);
            }
        }
    }
}
