package dev.weft.plan.group;

import dev.weft.plan.Shards;
import java.util.Arrays;

/**
 * Which rows of a call belong to which group, such as those that a rank's experts multiply: group
 * after group, and in each group the rows in ascending order. A row may be in several groups, each
 * time with a weight. Rows are numbered as in the whole A of the call.
 *
 * <p>Made once for a capacity and filled for each call, which allocates nothing. Used by one
 * thread; others may read it while it does not change.
 */
public final class RowGroups {

    private final int[] first;
    private final int[] rows;
    private final float[] weights;
    private Shards shards;

    /**
     * @param capacity the most rows of all groups together
     */
    public RowGroups(int groups, int capacity) {
        this.first = new int[groups + 1];
        this.rows = new int[capacity];
        this.weights = new float[capacity];
    }

    public int groups() {
        return first.length - 1;
    }

    /** The most rows of all groups together. */
    public int capacity() {
        return rows.length;
    }

    /** The rows of all groups together. */
    public int count() {
        return first[groups()];
    }

    /** Where a group's rows begin. */
    public int first(int group) {
        return first[group];
    }

    /** The rows of a group. */
    public int count(int group) {
        return first[group + 1] - first[group];
    }

    /** The row of A that is number {@code index} here. */
    public int row(int index) {
        return rows[index];
    }

    /** Its weight in that group. */
    public float weight(int index) {
        return weights[index];
    }

    /**
     * The index of the group's first row whose number is {@code row} or more; the group's end if
     * there is none.
     */
    public int from(int group, long row) {
        int low = first[group];
        int high = first[group + 1];
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (rows[middle] < row) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    /** How many rows of the call each rank has; null if nothing was filled in yet. */
    public Shards shards() {
        return shards;
    }

    /**
     * Begins anew, with groups of these sizes, whose rows are then {@link #put}.
     *
     * @param ofCall how many rows of the call each rank has
     * @param counts the size of group g is {@code counts[from + g]}
     */
    public void begin(Shards ofCall, int[] counts, int from) {
        shards = ofCall;
        int at = 0;
        for (int group = 0; group < groups(); group++) {
            first[group] = at;
            at += counts[from + group];
        }
        first[groups()] = at;
    }

    /** Sets row number {@code index} here; the rows of a group ascend. */
    public void put(int index, int row, float weight) {
        rows[index] = row;
        weights[index] = weight;
    }

    /**
     * Copies another one, which has as many groups.
     *
     * @throws IllegalArgumentException if its rows do not fit, or are not in order
     */
    public void copyFrom(RowGroups other) {
        other.check();
        if (other.groups() != groups() || other.count() > capacity()) {
            throw new IllegalArgumentException(
                    "%d rows in %d groups: expected at most %d in %d"
                            .formatted(other.count(), other.groups(), capacity(), groups()));
        }
        shards = other.shards;
        System.arraycopy(other.first, 0, first, 0, first.length);
        System.arraycopy(other.rows, 0, rows, 0, count());
        System.arraycopy(other.weights, 0, weights, 0, count());
    }

    /** Refuses rows that are not of the call, or not in order. */
    private void check() {
        for (int group = 0; group < groups(); group++) {
            long before = -1;
            for (int i = first[group]; i < first[group + 1]; i++) {
                if (rows[i] <= before || rows[i] >= shards.totalRows()) {
                    throw new IllegalArgumentException(
                            "row %d after row %d in group %d: expected rows of a call of %d, in ascending order"
                                    .formatted(rows[i], before, group, shards.totalRows()));
                }
                before = rows[i];
            }
        }
    }

    @Override
    public String toString() {
        int[] counts = new int[groups()];
        Arrays.setAll(counts, this::count);
        return "groups of " + Arrays.toString(counts) + " rows";
    }
}
